"""Subclasses that stand in for the classes of a model's modules, and the change to them and back.

A module keeps its parameters, hooks and attributes: only its class changes, to a subclass of the same name
with another forward. So it can be printed, copied, pickled and wrapped as before.
"""

import types

CALLS = "_heddle_calls"  # in a module: {reason: calls}; the reason is empty where heddle ran
_MADE = {}  # (class, kind) to its stand-in
_KINDS = {}  # by name, for pickles


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
    made = _MADE.get((original, kind.name))
    if made is None:

        def reduce(self, protocol):
            # The class is found by what it is made of: no module has it under its name.
            parts = original.__reduce_ex__(self, max(protocol, 2))
            return (_rebuild, (original, kind.name), *parts[2:])

        members = {
            "__module__": original.__module__,
            "__qualname__": original.__qualname__,
            "__doc__": original.__doc__,
            "__reduce_ex__": reduce,
            "_heddle_original": original,
            "_heddle_kind": kind,
            **kind.members(original),
        }
        made = _MADE[original, kind.name] = type(original.__name__, (original,), members)
    return made


def original_of(module):
    """The class that the module had before; None for a module that stands as it was made."""
    return getattr(type(module), "_heddle_original", None)


def _is_bound(function, module, owner, method):
    """It is the method of that class, bound to the module."""
    return getattr(function, "__self__", None) is module and (
        getattr(function, "__func__", None) is getattr(owner, method, None)
    )


def foreign(module, method="forward"):
    """Who put a method into the module itself, where it hides that of its class; empty: nobody."""
    own = module.__dict__.get(method)
    if own is None:
        return ""
    # accelerate's hooks call the forward that they found.
    hooked = method == "forward" and "_hf_hook" in module.__dict__
    inner = module.__dict__.get("_old_forward") if hooked else own
    if _is_bound(inner, module, type(module), method):
        return ""
    inner = getattr(inner, "func", inner)
    return f"{getattr(inner, '__module__', '?')}.{getattr(inner, '__qualname__', type(inner).__name__)}"


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


def take_off(module):
    """Gives a module its own class again."""
    before, after = type(module), original_of(module)
    module.__class__ = after
    module.__dict__.pop(CALLS, None)
    _rebind(module, before, after, before._heddle_kind.method)
