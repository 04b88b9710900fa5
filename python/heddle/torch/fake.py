"""Shapes of outputs without memory, by the names of dimensions. Sizes may be symbols: no length is fixed."""

import functools

import torch

from heddle import _heddle
from heddle.errors import InvalidArgument, Unsupported


def dtype_of(name):
    return getattr(torch, name)


def _leading(info, inputs):
    """Leading sizes by the number that tensors share; the first input that has them gives them."""
    found = {}
    for tensor, value in zip(info.inputs, inputs, strict=True):
        if value is not None and tensor.lead >= 0:
            found.setdefault(tensor.lead, value.shape[: value.dim() + 1 - len(tensor.dims)])
    return found


def _sizes(info, inputs, attributes):
    """Sizes of dimensions by their names."""
    sizes = {each.name: each.default for each in info.attributes} | attributes
    for tensor, value in zip(info.inputs, inputs, strict=True):
        if value is None:
            continue
        skipped = value.dim() - len(tensor.dims)
        for d, dim in enumerate(tensor.dims):
            if dim.name and d + skipped >= 0 and (d > 0 or tensor.lead < 0):
                sizes.setdefault(dim.name, value.shape[d + skipped] // dim.scale)
    return sizes


def _check(info, inputs):
    first = next(value for value in inputs if value is not None)
    for tensor, value in zip(info.inputs, inputs, strict=True):
        if value is None:
            continue
        few = len(tensor.dims) - (1 if tensor.lead >= 0 else 0)
        if value.dim() < few or (tensor.lead < 0 and value.dim() > len(tensor.dims)):
            raise InvalidArgument(
                f"[{info.name}] {tensor.name} is {list(value.shape)}; must be [{tensor.dims_text}]"
            )
        if not any(dtype_of(name) == value.dtype for name in tensor.dtypes if hasattr(torch, name)):
            raise InvalidArgument(
                f"[{info.name}] {tensor.name} is {value.dtype}; must be {' or '.join(tensor.dtypes)}"
            )
        if value.device != first.device:
            raise InvalidArgument(
                f"[{info.name}] {tensor.name} is on {value.device} and {info.inputs[0].name} on"
                f" {first.device}; all must be on one device"
            )


def _size(info, output, dim, sizes):
    if dim.name in sizes:
        return sizes[dim.name] * dim.scale
    # No input has it: a size that only the run knows.
    try:
        return torch.library.get_ctx().new_dynamic_size(min=1)
    except RuntimeError as error:
        raise Unsupported(
            f"[{info.name}] {output.name} has sizes that only the run knows, and meta tensors have none for"
            " that; use FakeTensorMode"
        ) from error


@functools.cache
def _dtypes(name, inputs, choices):
    """The dtypes of an op's results for names of dtypes of its inputs and choices, by the op's own rules."""
    return tuple(dtype_of(each) for each in _heddle.output_dtypes(name, list(inputs), dict(choices)))


def outputs_of(info, inputs, attributes):
    """Empty tensors as the op would make them."""
    _check(info, inputs)
    leading = _leading(info, inputs)
    sizes = _sizes(info, inputs, attributes)
    first = next(value for value in inputs if value is not None)
    given = tuple(None if value is None else str(value.dtype).removeprefix("torch.") for value in inputs)
    choices = tuple(
        (each.name, attributes.get(each.name, each.default)) for each in info.attributes if each.choices
    )
    made = []
    for output, dtype in zip(info.results, _dtypes(info.name, given, choices), strict=True):
        dims = output.dims[1:] if output.lead >= 0 else output.dims
        shape = [*leading.get(output.lead, ()), *(_size(info, output, dim, sizes) for dim in dims)]
        made.append(torch.empty(shape, dtype=dtype, device=first.device))
    return made
