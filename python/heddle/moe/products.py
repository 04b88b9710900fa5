"""Products of rows sorted by expert with the matrix of each expert, and of weights' gradients."""

import torch

import heddle.ops
from heddle.torch.gradient import refusing_of
from heddle.torch.register import register_composed

UNIT = 128  # rows that groups are multiples of on a GPU, as the kernel of grouped_matmul wants them


def unit_of(x):
    return UNIT if x.is_cuda else 1


def _parts(ends):
    """(group, its rows as a slice) of groups with rows, on a CPU."""
    begin = 0
    for group, end in enumerate(ends.tolist()):
        if end > begin:
            yield group, slice(begin, end)
        begin = max(begin, end)


def _multiply(a, b, ends):
    if a.is_cuda:
        return heddle.ops.grouped_matmul(a, b, ends, unit=UNIT)
    y = a.new_zeros(len(a), b.shape[2])
    for group, rows in _parts(ends):
        torch.mm(a[rows], b[group], out=y[rows])
    return y


def _multiply_terms(a, b, ends):
    if a.is_cuda:
        return heddle.ops.grouped_terms(a.t(), b, ends, unit=UNIT)
    y = a.new_zeros(len(ends), a.shape[1], b.shape[1])
    for group, rows in _parts(ends):
        torch.mm(a[rows].t(), b[rows], out=y[group])
    return y


# y [R, N] of a [R, K] and b [E, K, N]: each row by the matrix of its group. Rows of no group become 0.
multiply = register_composed(
    "experts_multiply(Tensor a, Tensor b, Tensor ends) -> Tensor",
    _multiply,
    lambda a, b, ends: a.new_empty(a.shape[0], b.shape[2]),
    refusing_of("experts_multiply"),
)
# y [E, M, N] of a [R, M] and b [R, N]: a.T b over the rows of each group; 0 for groups without rows.
multiply_terms = register_composed(
    "experts_multiply_terms(Tensor a, Tensor b, Tensor ends) -> Tensor",
    _multiply_terms,
    lambda a, b, ends: a.new_empty(ends.shape[0], a.shape[1], b.shape[1]),
    refusing_of("experts_multiply_terms"),
)
