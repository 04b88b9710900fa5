"""Sums, means and maxima over any dimensions, as torch has them: reduce_dim on views."""

import math
import operator

from heddle.errors import InvalidArgument, named
from heddle.ops.functions import FUNCTIONS

TYPE_CHECKING = False  # a type checker takes it for true; `import heddle.ops` is shorter without typing
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeVar

    T = TypeVar("T")
    Dims = int | Sequence[int] | None


@named
def sum(x: "T", dim: "Dims" = None, keepdim: bool = False, *, dtype: object = None) -> "T":
    """The sum over `dim`: a dimension, several, or None for all. It is added up in float32.

    The result has the dtype of x, or float32 where `dtype` says so. Dimensions may lie in any order; x is
    copied where its elements have no regular strides. Raises InvalidArgument for a dimension that x lacks.
    """
    return _reduced("sum", "sum", x, dim, keepdim, dtype)


@named
def mean(x: "T", dim: "Dims" = None, keepdim: bool = False, *, dtype: object = None) -> "T":
    """The mean over `dim`, as heddle.ops.sum; NaN where there are no elements."""
    return _reduced("mean", "mean", x, dim, keepdim, dtype)


@named
def amax(x: "T", dim: "Dims" = None, keepdim: bool = False) -> "T":
    """The maximum over `dim`; NaN where one of the elements is NaN. Elements that are the largest share the
    gradient. Raises InvalidArgument for a dimension without elements."""
    return _reduced("amax", "max", x, dim, keepdim, None)


def _dims(name, shape, dim):
    """The dimensions, counted from 0 in their order."""
    rank = len(shape)
    try:
        one = hasattr(dim, "__index__")
        given = range(rank) if dim is None else (dim,) if one else tuple(dim) or range(rank)
        given = [operator.index(each) for each in given]
    except TypeError as error:
        raise InvalidArgument(f"[{name}] dim is {dim!r}; must be a whole number or several") from error
    limit = max(rank, 1)
    for each in given:
        if not -limit <= each < limit:
            raise InvalidArgument(
                f"[{name}] dim is {each}, x is {list(shape)}; must be from {-limit} to {limit - 1}"
            )
    dims = sorted({each % limit for each in given})
    if len(dims) != len(given):
        raise InvalidArgument(f"[{name}] dim is {list(given)}; must have each dimension once")
    return [each for each in dims if each < rank]


def _wants_f32(name, dtype):
    if dtype is not None and str(getattr(dtype, "__name__", dtype)).rpartition(".")[2] not in (
        "float32",
        "f32",
    ):
        raise InvalidArgument(f"[{name}] dtype is {dtype}; must be float32, or None for that of x")
    return dtype is not None


def _permuted(x, order):
    if list(order) == sorted(order):
        return x
    return x.permute(order) if hasattr(x, "permute") else x.transpose(order)


def in_memory(x):
    """The dimensions by their strides, the widest first. torch.compile has symbols for strides, and takes
    another function (heddle/torch/register.py)."""
    strides = x.stride() if hasattr(x, "permute") else x.strides
    if not all(isinstance(each, int) for each in strides):
        return list(range(len(strides)))
    return sorted(range(len(strides)), key=lambda d: -abs(strides[d]) if strides[d] else -math.inf)


def _runs(order, dims):
    """Places of `order` whose dimensions are reduced, as [begin, end) of neighbours, the last first."""
    runs = []
    for place in reversed(range(len(order))):
        if order[place] not in dims:
            continue
        if runs and runs[-1][0] == place + 1:
            runs[-1][0] = place
        else:
            runs.append([place, place + 1])
    return runs


def _handed_on(name, x, dim, keepdim, dtype):
    """The call for what is no tensor and takes functions of tensors, as a Proxy of torch.fx."""
    from torch.overrides import handle_torch_function

    given = {} if dtype is None else {"dtype": dtype}
    return handle_torch_function(globals()[name], (x,), x, dim, keepdim, **given)


def _reduced(name, kind, x, dim, keepdim, dtype):
    if not isinstance(x.shape, tuple):
        return _handed_on(name, x, dim, keepdim, dtype)
    shape = tuple(x.shape)
    dims = _dims(name, shape, dim)
    in_f32 = _wants_f32(name, dtype)
    kept = [1 if d in dims else size for d, size in enumerate(shape)]
    if 0 in shape:
        result = _of_none(name, kind, x, dims)
    else:
        order = in_memory(x)
        runs = _runs(order, dims)
        if kind == "max" and len(runs) > 1 and getattr(x, "requires_grad", False):
            # The largest of all share the gradient evenly, which those of each run would not.
            order = [d for d in range(len(shape)) if d not in dims] + dims
            runs = _runs(order, dims)
        exact = kind == "max" or in_f32 or len(runs) < 2  # only the last result is rounded to x's dtype
        result = _permuted(x, order)
        sizes = [shape[d] for d in order]
        for begin, end in runs or [[len(order), len(order)]]:
            parts = math.prod(sizes[:begin]), math.prod(sizes[begin:end]), math.prod(sizes[end:])
            result = FUNCTIONS["reduce_dim"](
                result.reshape(parts), kind=kind, result="f32" if in_f32 or not exact else "input"
            )
            sizes[begin:end] = [1] * (end - begin)
        result = result.reshape(sizes)
        result = _permuted(result, [order.index(d) for d in range(len(order))])
        if not exact and result.dtype != x.dtype:
            result = result.to(x.dtype) if hasattr(result, "to") else result.astype(x.dtype)
    return result.reshape(kept if keepdim else [size for d, size in enumerate(shape) if d not in dims])


def _of_none(name, kind, x, dims):
    """The result for a tensor without elements."""
    missing = [d for d in dims if x.shape[d] == 0]
    if kind == "max" and missing:
        raise InvalidArgument(
            f"[{name}] x is {list(x.shape)}: dim {missing[0]} has no elements; a maximum needs one"
        )
    made = x.sum(tuple(dims), keepdim=True) if hasattr(x, "permute") else x.sum(tuple(dims), keepdims=True)
    return made * math.nan if kind == "mean" and missing else made
