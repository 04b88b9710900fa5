"""The ops of a mixture, with gradients that keep what a layer reads and no product that can be made again.

Rows are those of routes.sort: `choice`, `place` and `ends` of all ops are its results.
"""

import torch

import heddle.ops
from heddle.moe.products import multiply, multiply_terms
from heddle.torch.gradient import apply_of_function
from heddle.torch.register import register_composed


def _ones(place):
    return torch.ones(place.shape, dtype=torch.float32, device=place.device)


def _gather(x, choice, taken, shares=None):
    """Rows of x by choice, times their shares; zeros for none."""
    token = torch.div(choice, taken, rounding_mode="floor")[:, None]
    return heddle.ops.expert_sum(x, _ones(token) if shares is None else shares[:, None], token)


def _shares_of_rows(shares, choice):
    """The share of each row, 0 for none."""
    if shares.numel() == 0:
        return shares.new_zeros(choice.shape)
    return shares.reshape(-1)[choice.clamp(min=0)] * (choice >= 0)


def _at_places(values, place):
    """values [R] of rows, by token and choice."""
    if values.numel() == 0:
        return values.new_zeros(place.shape)
    return torch.where(place >= 0, values[place.clamp(min=0)], 0.0)


def _matrices(weight, transposed):
    """[E, inputs, outputs]"""
    return weight if transposed else weight.transpose(1, 2)


def _gradient_of_weight(x, dy, ends, transposed):
    return multiply_terms(x, dy, ends) if transposed else multiply_terms(dy, x, ends)


# y = x w, row by row; `gathers`: rows of x are tokens.
def _linear(x, weight, bias, choice, place, ends, *, gathers, transposed):
    rows = _gather(x, choice, place.shape[1]) if gathers else x
    y = multiply(rows, _matrices(weight, transposed), ends)
    if bias is not None:
        expert = torch.searchsorted(ends, torch.arange(len(y), device=y.device, dtype=ends.dtype), right=True)
        y += bias[expert.clamp(max=len(bias) - 1)]
    return y


def _linear_forward(ctx, op, attributes, x, weight, bias, *routes):
    ctx.attributes, ctx.bias_dtype = attributes, None if bias is None else bias.dtype
    ctx.save_for_backward(x, weight, *routes)
    return op(x, weight, bias, *routes, **attributes)


def _linear_backward(ctx, dy):
    x, weight, choice, place, ends = ctx.saved_tensors
    gathers, transposed = ctx.attributes["gathers"], ctx.attributes["transposed"]
    needs_x, needs_weight, needs_bias = ctx.needs_input_grad[2:5]
    dy = dy.contiguous()
    dx = dweight = dbias = None
    if needs_x:
        dx = multiply(dy, _matrices(weight, not transposed), ends)
        if gathers:
            dx = heddle.ops.expert_sum(dx, _ones(place), place)
    if needs_weight:
        rows = _gather(x, choice, place.shape[1]) if gathers else x
        dweight = _gradient_of_weight(rows, dy, ends, transposed)
    if needs_bias:  # a product has one order of sums
        ones = dy.new_ones(len(dy), 8) * (choice >= 0)[:, None]
        dbias = multiply_terms(ones, dy, ends)[:, 0].to(ctx.bias_dtype)
    return None, None, dx, dweight, dbias, None, None, None


def _linear_pretended(x, weight, bias, choice, place, ends, *, gathers, transposed):
    return x.new_empty(choice.shape[0], weight.shape[2 if transposed else 1])


# y = sum over a token's experts of share times row.
def _sum(x, shares, choice, place):
    return heddle.ops.expert_sum(x, shares, place)


def _sum_forward(ctx, op, attributes, x, shares, choice, place):
    ctx.save_for_backward(x, shares, choice, place)
    return op(x, shares, choice, place)


def _sum_backward(ctx, dy):
    x, shares, choice, place = ctx.saved_tensors
    dy, taken = dy.contiguous(), place.shape[1]
    dx = _gather(dy, choice, taken, _shares_of_rows(shares, choice)) if ctx.needs_input_grad[2] else None
    dshares = None
    if ctx.needs_input_grad[3]:
        products = _gather(dy, choice, taken).float().mul_(x)
        dshares = _at_places(products.sum(-1), place)
    return None, None, dx, dshares, None, None


# y = sum over a token's experts of share times (f(gate) up) w, where h is [gate, up].
def _halves(h):
    return h.chunk(2, dim=1)


def _gated(h, weight, shares, choice, place, ends, *, kind, transposed):
    product = heddle.ops.gated_product(*_halves(h), kind=kind)
    return heddle.ops.expert_sum(multiply(product, _matrices(weight, transposed), ends), shares, place)


def _gated_forward(ctx, op, attributes, *values):
    ctx.attributes = attributes
    ctx.save_for_backward(*values)
    return op(*values, **attributes)


def _gated_backward(ctx, dy):
    h, weight, shares, choice, place, ends = ctx.saved_tensors
    kind, transposed = ctx.attributes["kind"], ctx.attributes["transposed"]
    needs_h, needs_weight, needs_shares = ctx.needs_input_grad[2:5]
    rows = _gather(dy.contiguous(), choice, place.shape[1])
    product, share = heddle.ops.gated_product(*_halves(h), kind=kind), _shares_of_rows(shares, choice)
    dh = dweight = dshares = None
    if needs_h or needs_shares:
        dproduct = multiply(rows, _matrices(weight, not transposed), ends)
        if needs_shares:  # <dy, product w> = <dy w^T, product>
            dshares = _at_places(torch.linalg.vecdot(dproduct.float(), product.float()), place)
        if needs_h:
            dproduct = (dproduct * share[:, None]).to(h.dtype)
            dh = torch.empty_like(h)
            heddle.ops.gated_product_backward(*_halves(h), dproduct, kind=kind, out=_halves(dh))
    if needs_weight:
        product = (product * share[:, None]).to(h.dtype)
        dweight = _gradient_of_weight(product, rows, ends, transposed)
    return None, None, dh, dweight, dshares, None, None, None


_ROUTES = "Tensor choice, Tensor place"
LINEAR = register_composed(
    f"experts_linear(Tensor x, Tensor weight, Tensor? bias, {_ROUTES}, Tensor ends, *, bool gathers,"
    " bool transposed) -> Tensor",
    _linear,
    _linear_pretended,
    apply_of_function("experts_linear", _linear_forward, _linear_backward),
)
SUM = register_composed(
    f"experts_sum(Tensor x, Tensor shares, {_ROUTES}) -> Tensor",
    _sum,
    lambda x, shares, choice, place: x.new_empty(place.shape[0], x.shape[1]),
    apply_of_function("experts_sum", _sum_forward, _sum_backward),
)
GATED = register_composed(
    f"experts_gated(Tensor h, Tensor weight, Tensor shares, {_ROUTES}, Tensor ends, *, str kind,"
    " bool transposed) -> Tensor",
    _gated,
    lambda h, weight, shares, choice, place, ends, *, kind, transposed: h.new_empty(
        place.shape[0], weight.shape[2 if transposed else 1]
    ),
    apply_of_function("experts_gated", _gated_forward, _gated_backward),
)
