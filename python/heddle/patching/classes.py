"""Subclasses that stand in for the classes of a model's modules, and the change to them and back.

A module keeps its parameters, hooks and attributes: only its class changes, to a subclass of the same name
with another forward. So it can be printed, copied, pickled and wrapped as before.
"""

import functools
import types

CALLS = "_heddle_calls"  # in a module: {reason: calls}; the reason is empty where heddle ran
_MADE = {}  # (class, kind, the class's method) to its stand-in
_KINDS = {}  # by name, for pickles
_OF_EACH_CLASS = ("__dict__", "__weakref__")  # what Python makes anew


def register(kind):
    """Makes a kind of stand-in known by its name."""
    _KINDS[kind.name] = kind
    return kind


def _rebuild(original, name):
    """An empty module of a stand-in, for copies and pickles."""
    made = stand_in(original, _KINDS[name])
    return made.__new__(made)


def stand_in(original, kind):
    """The subclass of a module's class whose forward is that of the kind."""
    key = original, kind.name, getattr(original, kind.method)
    made = _MADE.get(key)
    if made is None:
        made = _MADE[key] = make(original, kind)
    return made


def make(original, kind):
    """As `stand_in`, made anew."""

    def reduce(self, protocol):
        parts = original.__reduce_ex__(self, max(protocol, 2))
        if type(self) is not made:  # a class of others, who say how it is found
            return parts
        # The class is found by what it is made of: no module has it under its name.
        return (_rebuild, (original, kind.name), *parts[2:])

    members = {
        "__module__": original.__module__,
        "__qualname__": original.__qualname__,
        "__doc__": original.__doc__,
        "__reduce_ex__": reduce,
        "_heddle_original": original,
        "_heddle_own": staticmethod(getattr(original, kind.method)),
        "_heddle_kind": kind,
        **kind.members(original),
    }
    made = type(original.__name__, (original,), members)
    return made


def original_of(module):
    """The class that the module had before; None for a module that stands as it was made."""
    return getattr(type(module), "_heddle_original", None)


def is_own(module):
    """True if nobody put a class above the one that heddle gave it, or the one that it had."""
    cls = type(module)
    return "_heddle_original" in vars(cls) or (
        not hasattr(cls, "_heddle_original") and "parametrizations" not in module._modules
    )


def class_name(cls):
    return f"{cls.__module__}.{cls.__qualname__}"


def name_of(function):
    """Where a function was written."""
    return (
        f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', type(function).__name__)}"
    )


def replaced(module):
    """Returns who put another method into the class that the module had, since it was patched, or "" for
    nobody."""
    cls = type(module)
    method = cls._heddle_kind.method
    now = getattr(cls._heddle_original, method)
    return "" if now is cls._heddle_own else name_of(now)


def _is_bound(function, module, owner, method):
    """It is the method of that class, bound to the module."""
    return getattr(function, "__self__", None) is module and (
        getattr(function, "__func__", None) is getattr(owner, method, None)
    )


def foreign(module, method="forward"):
    """Returns who put a method into the module itself, where it hides that of its class, or "" for nobody."""
    own = module.__dict__.get(method)
    if own is None:
        return ""
    # accelerate's hooks call the forward that they found.
    hooked = method == "forward" and "_hf_hook" in module.__dict__
    inner = module.__dict__.get("_old_forward") if hooked else own
    if _is_bound(inner, module, type(module), method):
        return ""
    return name_of(getattr(inner, "func", inner))


def _rebind(module, before, after, method):
    """Gives copies of a bound method, which hooks keep in the module, to the new class."""
    for name in (method, "_old_forward"):
        if _is_bound(module.__dict__.get(name), module, before, method):
            module.__dict__[name] = types.MethodType(getattr(after, method), module)


def put_on(module, kind):
    """Changes the class of a module to the kind's stand-in."""
    before = type(module)
    after = stand_in(before, kind)
    module.__class__ = after
    module.__dict__[CALLS] = {}
    _rebind(module, before, after, kind.method)


def _with_cell(member, cell):
    """A function whose `super()` means the class in that cell; any other member as it is."""
    free = member.__code__.co_freevars if isinstance(member, types.FunctionType) else ()
    if "__class__" not in free:
        return member
    closure = tuple(
        cell if name == "__class__" else own for name, own in zip(free, member.__closure__, strict=True)
    )
    made = types.FunctionType(
        member.__code__, member.__globals__, member.__name__, member.__defaults__, closure
    )
    made.__kwdefaults__ = member.__kwdefaults__
    return functools.update_wrapper(made, member)


def _without_stand_in(cls):
    """The class with the original where the stand-in was. Those that others have put above it, as a
    parametrization does, are made again."""
    if "_heddle_original" in vars(cls):
        return cls._heddle_original
    if not hasattr(cls, "_heddle_original"):
        return cls
    cell = types.CellType()
    own = {name: _with_cell(each, cell) for name, each in vars(cls).items() if name not in _OF_EACH_CLASS}
    cell.cell_contents = made = type(cls)(cls.__name__, tuple(map(_without_stand_in, cls.__bases__)), own)
    return made


def take_off(module):
    """Gives a module its own class again, below those that others have put on since."""
    before = type(module)
    after = module.__class__ = _without_stand_in(before)
    module.__dict__.pop(CALLS, None)
    _rebind(module, before, after, before._heddle_kind.method)
