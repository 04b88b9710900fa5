"""Registers every op that can be called by itself with torch."""

import torch

import heddle.ops
from heddle import _heddle
from heddle.errors import Unsupported
from heddle.ops.info import info as info_of
from heddle.torch import autocast, fake, gradient, schema

LIBRARY = torch.library.Library("heddle", "DEF")
BACKENDS = ("CPU", "CUDA")
OPS = {}  # by name


class Registered:
    """An op as torch has it."""

    def __init__(self, info):
        self.info = info
        define(info)
        packet = getattr(torch.ops.heddle, info.name)
        shorten(packet, info.name)
        self.functional, self.out = packet.default, packet.out
        self.with_gradient = self.eager_gradient = None
        self.cast = autocast.caster(info)
        if self.cast:
            autocast.register(LIBRARY, self)


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

    def refuse_vmap(*_, **__):
        raise Unsupported(
            f"[{info.name}] torch.vmap is not supported; call the op on the whole batch: it takes any number "
            "of leading dimensions"
        )

    tags = (torch.Tag.pt2_compliant_tag,)
    LIBRARY.define(schema.functional(info), tags=tags)
    LIBRARY.define(schema.out(info), tags=tags)
    for backend in BACKENDS:
        LIBRARY.impl(info.name, kernel, backend)
        LIBRARY.impl(f"{info.name}.out", write, backend)
    torch.library.register_fake(f"heddle::{info.name}", pretend, lib=LIBRARY)
    torch.library.register_fake(f"heddle::{info.name}.out", pretend_to_write, lib=LIBRARY)
    torch.library.register_vmap(f"heddle::{info.name}", refuse_vmap, lib=LIBRARY)


def shorten(packet, name):
    """Lets calls of the packet that torch need not see go past its dispatcher; it stays the same packet."""
    own = type(packet)
    call = staticmethod(_heddle.packet_function(name, packet.op))
    members = {"__call__": call, "__module__": own.__module__, "__doc__": own.__doc__}
    packet.__class__ = type(own.__name__, (own,), members)


def substitute(registered, function):
    """Puts the registered op where torch.compile meets the function."""
    inputs = tuple(each.name for each in registered.info.inputs)
    call, write, gradients = registered.functional, registered.out, registered.with_gradient
    single = len(registered.info.results) == 1
    over_dim = heddle.ops.rows.OVER_DIM.get(registered.info.name)

    def polyfill(*tensors, out=None, **keywords):
        if over_dim and ("dim" in keywords or len(tensors) > len(inputs)):
            return over_dim(*tensors, out=out, **keywords)
        tensors = (*tensors, *(keywords.pop(name, None) for name in inputs[len(tensors) :]))
        if out is not None:
            if not single:
                raise Unsupported("out= with several outputs is not supported in a compiled function")
            write(*tensors, out=out, **keywords)
            return out
        if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors):
            return gradients(tensors, keywords)
        return call(*tensors, **keywords)

    torch.compiler.substitute_in_graph(function, skip_signature_check=True)(polyfill)


def register_all():
    for name in _heddle.names():
        info = info_of(name)
        if info.callable:
            OPS[name] = Registered(info)
    for registered in OPS.values():
        function = gradient.function_of(registered.info.name)
        registered.with_gradient, registered.eager_gradient = gradient.make_call(registered.info, function)
        substitute(registered, function)


register_all()
