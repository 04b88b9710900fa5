"""Codes of 8 bits of a matrix and of its transpose: x = scale * code."""

from typing import NamedTuple

import torch

from heddle import ops
from heddle.float8.config import CODES

BLOCK = 128  # elements that share a scale
UNIT = 16  # codes in a row of a product are multiples of it
LARGEST = {code: float(torch.finfo(dtype).max) for code, dtype in CODES.items()}
LEAST = 1e-30  # a largest element is not taken for smaller, so that no scale is zero


class Coded(NamedTuple):
    """Codes [L, T] with scales f32: [1, 1] for all, [L, 1] for lines, [L, T / 128] for blocks of lines, or
    [L / 128, T / 128] for squares, rounded up."""

    codes: torch.Tensor
    scales: torch.Tensor

    def values(self):
        """Multiplies the codes by their scales, in f32."""
        lines, terms = self.codes.shape
        scales = self.scales
        if scales.shape[0] not in (1, lines):
            scales = scales.repeat_interleave(BLOCK, 0)[:lines]
        if scales.shape[1] > 1:
            scales = scales.repeat_interleave(BLOCK, 1)[:, :terms]
        return self.codes.float() * scales


class Both(NamedTuple):
    """A matrix [M, K] in lines of rows, and in lines of columns [K, M]; None where nobody wants them."""

    rows: "Coded | None"
    columns: "Coded | None"


def _scales(most, code):
    return most.float().clamp(min=LEAST) / LARGEST[code]


def _largest(x, dim):
    return torch.linalg.vector_norm(x, float("inf"), dim)


def _at(x, scales, turned_scales, code):
    codes, turned = ops.quantize_at(x, scales, turned_scales, code=code)
    return Both(Coded(codes, scales), Coded(turned, turned_scales))


def _by_tensor(x, code, wants_columns):
    scales = _scales(_largest(x.flatten(), 0), code).reshape(1, 1)
    return _at(x, scales, scales.t(), code)


def _by_row(x, code, wants_columns):
    if not wants_columns:
        return Both(Coded(*ops.quantize(x, code=code)), None)
    return _at(x, *[_scales(_largest(x, dim), code)[:, None] for dim in (1, 0)], code)


def _by_block(x, code, wants_columns):
    if not wants_columns:
        return Both(Coded(*ops.quantize(x, code=code, by="block")), None)
    codes, scales, turned, turned_scales = ops.quantize_both(x, code=code)
    return Both(Coded(codes, scales), Coded(turned, turned_scales))


def _by_square(x, code, wants_columns):
    rows, columns = x.shape
    few = (-columns % BLOCK, -rows % BLOCK)
    squares = torch.nn.functional.pad(x, (0, few[0], 0, few[1])) if any(few) else x
    most = _largest(squares.reshape(-(-rows // BLOCK), BLOCK, -1, BLOCK), (1, 3))
    scales = _scales(most, code)
    return _at(x, scales, scales.t().contiguous(), code)


_CASTS = {"tensor": _by_tensor, "row": _by_row, "block": _by_block, "square": _by_square}


@torch.no_grad()
def cast(x, by, code="e4m3", wants_columns=True):
    """Both of x [M, K], multiples of 16, with scales of a recipe, or of squares."""
    return _CASTS[by](x, code, wants_columns)
