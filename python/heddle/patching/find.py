"""Which kind of part a module is. Not its name decides, but what it has and does: children, parameters, and
what its forward computes on small numbers. So the parts of a family that nobody knows yet are taken, too.
"""

import inspect
import itertools
from dataclasses import dataclass

import torch
from torch.utils._python_dispatch import TorchDispatchMode


def own_class(module):
    """The class of a module without heddle's stand-in."""
    return getattr(type(module), "_heddle_original", None) or type(module)


def is_of_a_library(cls):
    """Its forward is one of transformers or torch, or came with a checkpoint: it only computes."""
    where = getattr(inspect.unwrap(cls.forward), "__module__", None) or ""
    return where.partition(".")[0] in ("torch", "transformers", "transformers_modules")


def bare(module, modules=None, parameters=None):
    """A module of the same class and attributes, with other children and parameters and without hooks."""
    cls = own_class(module)
    made = cls.__new__(cls)
    torch.nn.Module.__init__(made)
    hooks = {name for name in made.__dict__ if "hook" in name}
    made.__dict__.update({name: value for name, value in module.__dict__.items() if name not in hooks})
    made.__dict__.pop("forward", None)
    made.__dict__["_modules"] = dict(module._modules if modules is None else modules)
    made.__dict__["_parameters"] = dict(module._parameters if parameters is None else parameters)
    return made


def takes_one(cls):
    """Its forward is called with one tensor."""
    try:
        parameters = list(inspect.signature(cls.forward).parameters.values())[1:]
    except (TypeError, ValueError):
        return False
    needed = [each for each in parameters if each.default is each.empty]
    named = (each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) for each in needed)
    return len(needed) == 1 and all(named)


def number_of(module):
    """The name of a module's only float: a norm's eps."""
    floats = [name for name, value in module.__dict__.items() if type(value) is float]
    return floats[0] if len(floats) == 1 else None


_OF_NORMS = ({"weight"}, {"weight", "bias"})


def looks_like_norm(module):
    """It has a weight for each element of a row, and one small number."""
    return (
        not module._modules
        and not module._buffers
        and {name for name, value in module._parameters.items() if value is not None} in _OF_NORMS
        and module.weight.dim() == 1
        and number_of(module) is not None
        and takes_one(own_class(module))
    )


def looks_like_function(module):
    """It has nothing that is learnt, and takes one tensor."""
    is_empty = not (module._modules or module._parameters or module._buffers)
    return is_empty and takes_one(own_class(module))


def narrow(norm, width):
    """A norm of the same class over so few elements."""
    size = {} if "normalized_shape" not in norm.__dict__ else {"normalized_shape": (width,)}
    parameters = {
        name: None if value is None else torch.nn.Parameter(torch.ones(width))
        for name, value in norm._parameters.items()
    }
    made = bare(norm, parameters=parameters)
    made.__dict__.update(size, **{number_of(norm): 1e-3})
    return made


class _Counter(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.ops = 0

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        self.ops += 1
        return function(*arguments, **(keywords or {}))


def operations(module, x):
    """Counts the operations of torch in a module's forward."""
    with torch.no_grad(), _Counter() as counter:
        own_class(module).forward(bare(module), x)
    return counter.ops


def calls_interface(cls):
    """Its forward calls the attention that the model's config names."""
    forward = inspect.unwrap(cls.forward)
    return "ALL_ATTENTION_FUNCTIONS" in getattr(getattr(forward, "__code__", None), "co_names", ())


@dataclass(frozen=True)
class Gated:
    """The children of down(act(gate(x)) * up(x)); `up` is None where gate's result has both halves."""

    gate: str
    up: str | None
    down: str
    act: str


class _Noted(torch.nn.Module):
    """Stands in for a child, and notes what it gets."""

    def __init__(self, function):
        super().__init__()
        self.function, self.given = function, []

    def forward(self, x):
        self.given.append(x)
        return self.function(x)


_WIDTH = 8


def gated(module):
    """The children of a gated product by what they do; None where the module computes something else."""
    names = [name for name, child in module._modules.items() if child is not None]
    acts = [name for name in names if not list(module._modules[name].parameters())]
    if len(names) not in (3, 4) or not takes_one(own_class(module)):
        return None
    for act, down in itertools.product(acts, names):
        ins = [name for name in names if name not in (act, down)]
        for order in itertools.permutations(ins) if act != down else ():
            found = Gated(order[0], order[1] if len(order) > 1 else None, down, act)
            if all(_is_gated(module, found, training) for training in (False, True)):
                return found
    return None


def _is_gated(module, names, training):
    generator = torch.Generator("cpu").manual_seed(1)

    def constant(width):
        value = torch.rand(2, width, generator=generator, dtype=torch.float32, device="cpu")
        return _Noted(lambda _: value.clone())

    children = {name: _Noted(torch.nn.Identity()) for name in module._modules}
    children[names.act] = _Noted(torch.tanh)
    children[names.down] = constant(_WIDTH)
    for name in filter(None, (names.gate, names.up)):
        children[name] = constant(_WIDTH if names.up else 2 * _WIDTH)
    copy = bare(module, children)
    x = torch.rand(2, _WIDTH, generator=generator, dtype=torch.float32, device="cpu")
    copy.training = training
    try:
        result = own_class(module).forward(copy, x)
    except Exception:
        return False
    if any(len(children[name].given) != 1 for name in children):
        return False
    gate = children[names.gate].function(x)
    gate, up = (gate, children[names.up].function(x)) if names.up else gate.chunk(2, dim=-1)
    ins = [children[name].given[0] for name in (names.gate, names.up) if name]
    return (
        all(each is x for each in ins)
        and torch.equal(children[names.act].given[0], gate)
        and torch.allclose(children[names.down].given[0], torch.tanh(gate) * up)
        and torch.equal(result, children[names.down].function(x))
    )
