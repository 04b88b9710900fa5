"""Ops of one's own inside torch: each is registered when torch first meets it."""

import contextlib
import threading

import torch

from heddle.errors import Error, Unsupported
from heddle.ops.info import info as info_of
from heddle.own import op as own_op
from heddle.torch.register import OPS, Registered

_lock = threading.Lock()
FUNCTIONS = {}  # by name: what torch.compile knows

is_compiling = torch.compiler.is_compiling


def registered(name):
    """The op as torch has it."""
    with _lock:
        op = OPS.get(name)
        if op is None:
            made = own_op.made_of(name)
            op = Registered(info_of(name), made.function, made)
            op.function = made.cls
            FUNCTIONS[name] = made.function
            OPS[name] = op
        return op


def register_made():
    """Registers the ops of one's own that the registry has."""
    for made in own_op.registered():
        with contextlib.suppress(Error):  # its own call says what is wrong with it
            registered(made.name)


@torch.compiler.assume_constant_result
def _name_of(cls, given):
    """The name of the class's op, which is registered; this runs while torch.compile looks at the call."""
    cls._require_declaration()
    cls._require_attributes(given)
    name = own_op._made(cls).name
    # torch.compile sees the tables as they are at the first call that it meets, so that all are there then.
    for reference in own_op._declared:
        other = reference()
        if other is not None:
            with contextlib.suppress(Error):  # its own call says what is wrong with it
                registered(own_op._made(other).name)
    registered(name)
    return name


def call(cls, tensors, out, backend, arguments):
    """A call of the class where torch.compile looks at it."""
    if backend is not None:
        raise Unsupported("backend= is not supported in a compiled function; use heddle.set_backend")
    return FUNCTIONS[_name_of(cls, tuple(arguments))](*tensors, out=out, **arguments)
