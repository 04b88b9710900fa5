"""Codes whose errors are fed back: each column of a matrix is rounded in turn, and those after it take up its
error in the outputs, as far as they can (Frantar et al., 2022: "GPTQ").

It lessens |X (W - Q)^T|^2 for inputs X, of which it needs H = X^T X alone.
"""

import torch

from heddle.errors import InvalidArgument
from heddle.quant.formats import Codes
from heddle.quant.linear import whole_of_unit

BLOCK = 128  # columns whose errors reach the columns after them in one product
DAMPING = 0.01  # times the mean of H's diagonal is added to it: inputs that never occur have no say


class Hessian:
    """X^T X of the inputs that a layer was given, in float32."""

    def __init__(self, columns, device="cpu"):
        self.matrix, self.rows = torch.zeros(columns, columns, device=device), 0

    def add(self, x):
        x = x.detach().reshape(-1, x.shape[-1]).float()
        self.matrix.addmm_(x.T, x)
        self.rows += len(x)


def feedback_of(hessian, damping=DAMPING):
    """The upper Cholesky factor of H^-1, in float64. Row i says where the error of column i goes."""
    h = hessian.double().clone()
    if not torch.isfinite(h).all():
        raise InvalidArgument("[gptq] the inputs of a layer are not finite; is the model's dtype too narrow?")
    diagonal = h.diagonal()
    diagonal[diagonal == 0] = 1  # an input that is always zero
    diagonal += damping * diagonal.mean()
    lower = torch.linalg.cholesky(h)
    return torch.linalg.cholesky(torch.cholesky_inverse(lower), upper=True)


def encode(format, weight, hessian, whole, damping=DAMPING):
    """The Codes of a matrix [rows, columns], for inputs with that X^T X [columns, columns]."""
    feedback = feedback_of(hessian, damping)
    importance = hessian.diagonal().float()
    left = weight.double().clone()  # columns that are to be rounded, with the errors of those before
    columns = weight.shape[1]
    group = format.group or columns
    points, values = torch.empty_like(left, dtype=torch.float32), torch.empty_like(left, dtype=torch.float32)
    scales = points.new_empty(len(left), columns // group)
    for begin, end in _blocks(columns, group):
        errors = torch.empty_like(left[:, begin:end])
        for at in range(begin, end):
            if at % group == 0:
                ahead = slice(at, at + group)
                scales[:, at // group] = format.choose_scales(
                    left[:, ahead].float(), whole, importance[ahead]
                )
            scale = scales[:, at // group]
            points[:, at], values[:, at] = format.round(left[:, at].float(), scale, whole)
            error = (left[:, at] - values[:, at]) / feedback[at, at]
            left[:, at:end] -= error[:, None] * feedback[at, at:end]
            errors[:, at - begin] = error
        left[:, end:] -= errors @ feedback[begin:end, end:]
    return Codes(format.pack(points, scales, whole), values.to(weight.dtype))


def _blocks(columns, group):
    """(begin, end) of at most BLOCK columns; all errors have arrived in a group of columns when it begins."""
    span = group if group >= BLOCK else group * (BLOCK // group)
    for first in range(0, columns, span):
        last = min(first + span, columns)
        for begin in range(first, last, BLOCK):
            yield begin, min(begin + BLOCK, last)


def encode_layers(format, layers, hessian, damping=DAMPING):
    """{name: Codes} of matrices {name: tensor} that have the same inputs and are multiplied as one."""
    whole = whole_of_unit(format, layers)
    return {name: encode(format, each, hessian, whole, damping) for name, each in layers.items()}
