"""The end of a gated MLP, down(silu(gate) * up), whose product is not kept for the gradient."""

import torch

import heddle.ops
from heddle.torch.gradient import apply_of_function
from heddle.torch.register import register_composed

KIND = "silu"


def _product(gate, up):
    return heddle.ops.gated_product(gate, up, kind=KIND)


def _gated_linear(gate, up, weight):
    return torch.nn.functional.linear(_product(gate, up), weight)


def _pretended(gate, up, weight):
    return gate.new_empty(*gate.shape[:-1], weight.shape[0])


def _forward(ctx, op, attributes, *values):
    ctx.save_for_backward(*values)
    return op(*values)


def _backward(ctx, given):
    needs, (gate, up, weight) = ctx.needs_input_grad[2:], ctx.saved_tensors
    rows = given.reshape(-1, given.shape[-1])
    dweight = rows.T @ _product(gate, up).reshape(len(rows), -1) if needs[2] else None
    dgate = dup = None
    if needs[0] or needs[1]:
        dproduct = (rows @ weight).reshape(gate.shape)
        dgate, dup = heddle.ops.gated_product_backward(gate, up, dproduct, kind=KIND)
    return None, None, dgate, dup, dweight


GATED_LINEAR = register_composed(
    "gated_linear(Tensor gate, Tensor up, Tensor weight) -> Tensor",
    _gated_linear,
    _pretended,
    apply_of_function("gated_linear", _forward, _backward),
)
