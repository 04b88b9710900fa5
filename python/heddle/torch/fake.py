"""Shapes of outputs without memory, by the names of dimensions. Sizes may be symbols: no length is fixed."""

import functools

import torch
from torch._library.fake_impl import allocate_size

from heddle import _heddle
from heddle.errors import InvalidArgument, Unsupported


def dtype_of(name):
    return getattr(torch, name)


def _name_of(dtype):
    return str(dtype).removeprefix("torch.")


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


def _known(size):
    """The size as a number: for a symbol that of the example; None where there is none."""
    return size if type(size) is int else size.node.hint if size.node.has_hint() else None


def _forms(info, inputs, attributes):
    """(dtype, sizes) of the results by the op's own rules, and True if they hold for these inputs and not for
    an example alone; None where an input has a size that only the run knows."""
    given = [
        None
        if value is None
        else (
            _name_of(value.dtype),
            *([_known(each) for each in all] for all in (value.shape, value.stride())),
        )
        for value in inputs
    ]
    known = {
        name: value if isinstance(value, (bool, float, str)) else _known(value)
        for name, value in attributes.items()
    }
    if None in known.values() or any(None in (*each[1], *each[2]) for each in given if each):
        return None, False
    symbols = [size for value in inputs if value is not None for size in value.shape] + [*attributes.values()]
    exact = not any(isinstance(each, torch.SymInt) for each in symbols)
    return _heddle.output_forms(info.name, given, known), exact


def _power_columns(power, dim):
    """Columns of the symmetric power of rows of `dim` elements (heddle/ops/sympow/sympow_columns.h)."""
    tiles = 1
    for i in range(power):
        tiles = tiles * (dim // 8 + i) // (i + 1)
    return tiles * 8**power


# Sizes that no input has, as what is known gives them, for inputs whose sizes are symbols.
_RULES = {
    ("sympow", "N"): lambda known: _power_columns(known["power"], known["K"]),
    ("mma_sympow", "C"): lambda known: (
        _power_columns(known["power"], known["K"])
        * (-(-known["T"] // known["chunk"]) if known["chunk"] else 1)
    ),
    ("state_values", "P"): lambda known: known["E"] + 8 * known["normalise"],
}


def _new_size(info, output):
    """A size that no input has, and that only the run knows."""
    mode = torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE)
    if mode is None or mode.shape_env is None:
        raise Unsupported(f"[{info.name}] {output.name} has a size that only the run knows")
    return allocate_size(mode.shape_env, min_val=1)


@functools.cache
def _dtypes(name, inputs, choices):
    """The dtypes of an op's results for names of dtypes of its inputs and choices, by the op's own rules."""
    return tuple(_heddle.output_dtypes(name, list(inputs), dict(choices)))


def outputs_of(info, inputs, attributes):
    """Empty tensors as the op would make them."""
    _check(info, inputs)
    leading = _leading(info, inputs)
    sizes = _sizes(info, inputs, attributes)
    first = next(value for value in inputs if value is not None)
    choices = tuple(
        (each.name, attributes.get(each.name, each.default)) for each in info.attributes if each.choices
    )
    forms, exact = _forms(info, inputs, attributes)
    if forms is None:
        given = tuple(None if value is None else _name_of(value.dtype) for value in inputs)
        forms = [(dtype, ()) for dtype in _dtypes(info.name, given, choices)]
    made = []
    for output, (dtype, known) in zip(info.results, forms, strict=True):
        begin = 1 if output.lead >= 0 else 0
        shape = [*leading.get(output.lead, ())]
        for d, dim in enumerate(output.dims[begin:], begin):
            if dim.name in sizes:
                shape.append(sizes[dim.name] * dim.scale)
            elif exact:
                shape.append(known[d])
            elif rule := _RULES.get((info.name, dim.name)):
                shape.append(rule(sizes))
            else:
                shape.append(_new_size(info, output))
        made.append(torch.empty(shape, dtype=dtype_of(dtype), device=first.device))
    return made
