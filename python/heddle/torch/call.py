"""Calls that torch must see: for a gradient, a mode or a subclass of its tensors."""

import torch

import heddle.ops
from heddle.errors import InvalidArgument, Unsupported
from heddle.torch import own
from heddle.torch.register import OPS


def _first_line(error):
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _outs(info, out):
    """The given outputs as keywords of the form `.out`."""
    from heddle.torch.schema import out_names

    names, results = out_names(info), info.results
    if isinstance(out, dict):
        given = dict(out)
        out = tuple(given.pop(result.name, None) for result in results)
        if given:
            raise Unsupported(f"[{info.name}] {', '.join(given)} can be asked for with plain tensors only")
    elif not isinstance(out, (tuple, list)):
        out = (out,)
    if len(out) != len(results) or any(tensor is None for tensor in out):
        raise InvalidArgument(
            f"[{info.name}] out has {len(out)} tensors; must have all of {', '.join(r.name for r in results)}"
        )
    return dict(zip(names, out, strict=True))


def _registered(name):
    return OPS.get(name) or own.registered(name)


def call(name, inputs, attributes, out):
    """The call by torch's dispatcher, or by an input that takes functions of tensors, as torch.fx's Proxy."""
    op = _registered(name)
    if any(each is not None and not isinstance(each, torch.Tensor) for each in inputs):
        given = attributes if out is None else {**attributes, "out": out}
        return torch.overrides.handle_torch_function(op.function, inputs, *inputs, **given)
    try:
        if out is None:
            return op.functional(*inputs, **attributes)
        op.out(*inputs, **attributes, **_outs(op.info, out))
    except NotImplementedError as error:
        raise InvalidArgument(f"[{name}] {_first_line(error)}") from error
    return out


def call_with_autocast(name, inputs, attributes, out):
    """The call on inputs that torch.autocast converted first."""
    inputs = _registered(name).cast(inputs)
    with torch._C._DisableAutocast():
        return getattr(heddle.ops, name)(*inputs, **attributes, out=out)


def gradient_call_of(name):
    """The function of inputs and attributes that calls the op inside an autograd.Function."""
    return _registered(name).eager_gradient
