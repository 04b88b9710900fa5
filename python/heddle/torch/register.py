"""Registers every op that can be called by itself with torch."""

import torch

from heddle import _heddle
from heddle.errors import Unsupported
from heddle.ops import reductions, rows
from heddle.ops.info import info as info_of
from heddle.torch import autocast, fake, gradient, schema

LIBRARY = torch.library.Library("heddle", "DEF")
BACKENDS = ("CPU", "CUDA")
TAGS = (torch.Tag.pt2_compliant_tag,)
OPS = {}  # by name


class Registered:
    """An op as torch has it. `function`: as heddle.ops has it; `made`: it is one's own."""

    def __init__(self, info, function, made=None):
        self.info, self.function = info, function
        define(info)
        packet = getattr(torch.ops.heddle, info.name)
        shorten(packet, info.name)
        self.functional, self.out = packet.default, packet.out
        self.eager_gradient, kernel = gradient.make_calls(info, function, self.functional, made)
        LIBRARY.impl(info.name, _heddle.autograd_function(info.name, kernel), "Autograd", with_keyset=True)
        self.cast = autocast.caster(info)
        if self.cast:
            autocast.register(LIBRARY, self)
        substitute(self, function)


def define(info):
    kernel = _heddle.function(info.name, True)
    outs = schema.out_names(info)

    def write(*inputs, **keywords):
        given = tuple(keywords.pop(name) for name in outs)
        kernel(*inputs, out=given, **keywords)

    def pretend(*inputs, **keywords):
        inputs = (*inputs, *(None for _ in range(len(info.inputs) - len(inputs))))
        made = fake.outputs_of(info, inputs, keywords)
        return made[0] if len(made) == 1 else tuple(made)

    def pretend_to_write(*inputs, **keywords):
        return None

    LIBRARY.define(schema.functional(info), tags=TAGS)
    LIBRARY.define(schema.out(info), tags=TAGS)
    for backend in BACKENDS:
        LIBRARY.impl(info.name, kernel, backend)
        LIBRARY.impl(f"{info.name}.out", write, backend)
    torch.library.register_fake(f"heddle::{info.name}", pretend, lib=LIBRARY)
    torch.library.register_fake(f"heddle::{info.name}.out", pretend_to_write, lib=LIBRARY)
    register_batches(info.name)


def register_batches(name):
    """torch.vmap calls the op for each element of the batch: rows of different elements never meet."""
    call = getattr(torch.ops.heddle, name).default

    def each(batch, dims, *inputs, **keywords):
        if batch.batch_size == 0:
            raise Unsupported(f"[{name}] torch.vmap over no elements is not supported")
        made = [
            call(*(x if d is None else x.select(d, i) for x, d in zip(inputs, dims, strict=True)), **keywords)
            for i in range(batch.batch_size)
        ]
        if isinstance(made[0], torch.Tensor):
            return torch.stack(made), 0
        return tuple(torch.stack(each) for each in zip(*made, strict=True)), (0,) * len(made[0])

    torch.library.register_vmap(f"heddle::{name}", each, lib=LIBRARY)


def register_composed(text, function, pretend, apply):
    """Registers a function of tensors that calls heddle's ops, with its schema, fake and gradient."""
    name = text.partition("(")[0]
    LIBRARY.define(text, tags=TAGS)
    op = getattr(torch.ops.heddle, name).default

    def without_autocast(*inputs, **keywords):
        with torch._C._DisableAutocast():
            return function(*inputs, **keywords)

    for backend in BACKENDS:
        LIBRARY.impl(name, without_autocast, backend)
    torch.library.register_fake(f"heddle::{name}", pretend, lib=LIBRARY)
    register_batches(name)
    names = tuple(each.name for each in op._schema.arguments if not each.kwarg_only)
    kernel = gradient.kernel_of(name, names, op, lambda inputs: apply)
    LIBRARY.impl(name, kernel, "Autograd", with_keyset=True)
    return op


def shorten(packet, name):
    """Lets calls of the packet that torch need not see go past its dispatcher; it stays the same packet."""
    own = type(packet)
    call = staticmethod(_heddle.packet_function(name, packet.op))
    members = {"__call__": call, "__module__": own.__module__, "__doc__": own.__doc__}
    packet.__class__ = type(own.__name__, (own,), members)


def substitute(registered, function):
    """Puts the registered op where torch.compile meets the function."""
    inputs = tuple(each.name for each in registered.info.inputs)
    call, write = registered.functional, registered.out
    single = len(registered.info.results) == 1
    over_dim = rows.OVER_DIM.get(registered.info.name)

    def polyfill(*tensors, out=None, **keywords):
        if over_dim and ("dim" in keywords or len(tensors) > len(inputs)):
            return over_dim(*tensors, out=out, **keywords)
        tensors = (*tensors, *(keywords.pop(name, None) for name in inputs[len(tensors) :]))
        if out is not None:
            if not single:
                raise Unsupported("out= with several outputs is not supported in a compiled function")
            write(*tensors, out=out, **keywords)
            return out
        return call(*tensors, **keywords)

    torch.compiler.substitute_in_graph(function, skip_signature_check=True)(polyfill)


@torch.compiler.substitute_in_graph(reductions.in_memory)
def in_order(x):
    """torch.compile has symbols for strides, which have no order."""
    return list(range(x.dim()))


def register_all():
    for name in _heddle.names():
        info = info_of(name)
        if info.callable:
            OPS[name] = Registered(info, gradient.function_of(name))


register_all()
