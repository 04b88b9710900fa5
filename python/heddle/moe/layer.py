"""A mixture's MLPs as a function of tensors."""

import torch

from heddle.errors import InvalidArgument, named
from heddle.moe import ops, routes
from heddle.moe.products import unit_of

KINDS = ("silu", "gelu", "gelu_tanh", "relu", "sigmoid", "relu_squared")
_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def cast(x, *weights):
    """x and the weights as they are multiplied: of autocast's dtype, or of the weights'."""
    kind = x.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weights[0].dtype
    return x.to(dtype), *(None if each is None else each.to(dtype) for each in weights)


def _require(condition, text):
    if not condition:
        raise InvalidArgument(f"[grouped_mlp] {text}")


def _check(x, index, shares, gate_up, down, act):
    given = {"x": x, "index": index, "shares": shares, "gate_up": gate_up, "down": down}
    for name, value in given.items():
        _require(
            isinstance(value, torch.Tensor), f"{name} is a {type(value).__name__}; must be a torch.Tensor"
        )
        _require(
            value.device == x.device, f"{name} is on {value.device} and x on {x.device}; must be one device"
        )
    sizes = ", ".join(f"{name} {list(value.shape)}" for name, value in given.items())
    fits = [value.dim() for value in given.values()] == [2, 2, 2, 3, 3] and (
        index.shape == shares.shape
        and len(index) == len(x)
        and gate_up.shape == (len(down), 2 * down.shape[2], x.shape[1])
        and down.shape[1] == x.shape[1]
    )
    _require(fits, f"sizes are {sizes}; must be [T, H], [T, C], [T, C], [E, 2 I, H] and [E, H, I]")
    _require(not index.is_floating_point(), f"index is of {index.dtype}; must be of integers")
    for name in ("x", "gate_up", "down"):
        dtype = given[name].dtype
        _require(dtype in _DTYPES, f"{name} is of {dtype}; must be of float32, float16 or bfloat16")
    _require(
        gate_up.dtype == down.dtype, f"gate_up is of {gate_up.dtype} and down of {down.dtype}; must be one"
    )
    _require(act in KINDS, f"act = {act!r}; must be one of {', '.join(KINDS)}")


@named
def grouped_mlp(
    x: torch.Tensor,
    index: torch.Tensor,
    shares: torch.Tensor,
    gate_up: torch.Tensor,
    down: torch.Tensor,
    *,
    act: str = "silu",
) -> torch.Tensor:
    """y [T, H]: the sum over the experts e = index[t, c] of a token of shares[t, c] down[e] (act(gate) up).

    x [T, H]; index [T, C], integers; shares [T, C]; gate_up [E, 2 I, H], gates first; down [E, H, I]. There
    are gradients of x, shares, gate_up and down; those of experts without tokens are exactly 0. No token is
    dropped; an index outside of 0 ... E - 1 adds nothing. Sums have one order, so that each run gives the
    same bits, and the host waits for nothing on a GPU. For the gradient x, the routes and [gate, up] of each
    choice are kept. Under torch.autocast all become its dtype.
    """
    _check(x, index, shares, gate_up, down, act)
    dtype = x.dtype
    x, gate_up, down = cast(x, gate_up, down)
    x = x.contiguous()
    choice, place, ends = routes.sort(index, len(gate_up), unit_of(x))
    h = ops.LINEAR(x, gate_up, None, choice, place, ends, gathers=True, transposed=False)
    y = ops.GATED(h, down, shares.float(), choice, place, ends, kind=act, transposed=False)
    return y.to(dtype)
