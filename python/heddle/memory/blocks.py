"""Finds the blocks that a model repeats, and puts a caller around each: its class becomes a subclass of the
same name."""

import copyreg
import weakref

import torch

from heddle.errors import InvalidArgument, Unsupported

LEAST_SHARE = 0.1  # as a share of the parameters in the largest list
_MADE = {}
_AROUND = weakref.WeakKeyDictionary()  # a module to the function that is called around it


def find_blocks(model, given=None):
    """[(name, module)] of the blocks, in the model's order; `given` are modules, or names of classes."""
    if given is not None:
        return _given(model, given)
    lists = list(_lists(model))
    sizes = [sum(each.numel() for _, block in blocks for each in block.parameters()) for blocks in lists]
    found = [
        each
        for blocks, size in zip(lists, sizes, strict=True)
        if size >= LEAST_SHARE * max(sizes)
        for each in blocks
    ]
    if not found:
        raise Unsupported(
            f"[heddle.memory] {type(model).__name__} repeats no block: no list of modules has two of one "
            "class with parameters; name them: blocks=[model.first, model.second]"
        )
    return found


def _given(model, given):
    names = [each for each in given if isinstance(each, str)] if not isinstance(given, str) else [given]
    modules = dict.fromkeys(each for each in given if not isinstance(each, str))
    found = [
        (name, each)
        for name, each in model.named_modules()
        if each in modules or type(each).__name__ in names
    ]
    if not found or len({id(each) for _, each in found} & {id(each) for each in modules}) < len(modules):
        raise InvalidArgument(
            f"[heddle.memory] blocks={given!r}: not all of these are modules of the model, or names of "
            "their classes"
        )
    return found


def _lists(module, name=""):
    for key, child in module.named_children():
        path = f"{name}.{key}" if name else key
        blocks = list(child.children())
        is_list = isinstance(child, (torch.nn.ModuleList, torch.nn.Sequential)) and len(blocks) > 1
        if (
            is_list
            and len({type(each) for each in blocks}) == 1
            and all(any(True for _ in each.parameters()) for each in blocks)
        ):
            yield [(f"{path}.{at}", each) for at, each in child.named_children()]
        else:
            yield from _lists(child, path)


def around(module, function):
    """From now on a call of the module is `function(call, args, kwargs)`."""
    if module in _AROUND:
        raise InvalidArgument(
            f"[heddle.memory] this {type(module).__name__} has a plan already; remove() that one before"
        )
    module.__class__ = _stand_in(type(module))
    _AROUND[module] = function


def around_of(module):
    """The function that is called around a module; None where there is none."""
    return _AROUND.get(module)


def leave(module):
    """The module is again what it was."""
    if _AROUND.pop(module, None) is not None and "_heddle_below" in vars(type(module)):
        module.__class__ = type(module)._heddle_below


def _empty(original):
    """A module without anything, for copies and files."""
    return original.__new__(original)


def _stand_in(original):
    if original in _MADE:
        return _MADE[original]

    def call(self, *args, **kwargs):
        function = _AROUND.get(self)
        if function is None:
            return original.__call__(self, *args, **kwargs)
        return function(lambda: original.__call__(self, *args, **kwargs), args, kwargs)

    def reduce(self, protocol):
        # Copies, and files, have the class that the module had, and no plan.
        parts = original.__reduce_ex__(self, max(protocol, 2))
        if type(self) is not made or parts[0] is not copyreg.__newobj__:
            return parts
        return (_empty, (original,), *parts[2:])

    members = {
        "__module__": original.__module__,
        "__qualname__": original.__qualname__,
        "__doc__": original.__doc__,
        "__call__": call,
        "__reduce_ex__": reduce,
        "_heddle_below": original,
    }
    made = _MADE[original] = type(original.__name__, (original,), members)
    return made
