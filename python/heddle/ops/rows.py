"""Ops over the last dimension, over any dimension as torch's functions of these names are."""

import operator

from heddle import _heddle
from heddle.errors import InvalidArgument
from heddle.ops.functions import FUNCTIONS


def _last(name, x, dim):
    """The dimension as a number from 0, and whether it is the last."""
    rank = len(getattr(x, "shape", ()))
    if not hasattr(dim, "__index__") or not -rank <= dim < rank:
        raise InvalidArgument(
            f"[{name}] dim is {dim!r}, x has {rank} dimensions; must be a number from {-rank} to {rank - 1}"
        )
    at = operator.index(dim) % rank
    return at, at == rank - 1


def _moved(x, source, to):
    if hasattr(x, "movedim"):
        return x.movedim(source, to).contiguous()
    order = [d for d in range(x.ndim) if d != source]
    order.insert(to % x.ndim, source)
    return x.transpose(order).copy()


def _over_dim(name, keeps_dim):
    """Makes calls with `dim`: the dimension becomes the last, and goes back."""

    def call(x=None, dim=-1, *, out=None, **others):
        function = FUNCTIONS[name]
        if x is None or others:
            return function(x, out=out, **others)  # which says what is wrong
        at, is_last = _last(name, x, dim)
        if is_last:
            return function(x, out=out)
        y = function(_moved(x, at, -1))
        if keeps_dim:
            y = _moved(y, y.ndim - 1, at)
        if out is None:
            return y
        if tuple(out.shape) != tuple(y.shape):
            raise InvalidArgument(
                f"[{name}] out is {list(out.shape)}; must be {list(y.shape)}, as the result is"
            )
        out[...] = y
        return out

    return call


# By the op's name. True: the result has the dimension, too.
OVER_DIM = {name: _over_dim(name, keeps_dim) for name, keeps_dim in (("softmax", True), ("argmax", False))}
for _name, _function in OVER_DIM.items():
    _heddle.set_over_dim(_name, _function)
