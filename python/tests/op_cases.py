"""Inputs of an op's own cases, and what tests compare."""

import pytest
import torch

import heddle.ops
from heddle.commands.cases import (
    by_reference,
    call,
    distance,
    dtype_of,
    out_of,
    random_tensor,
    results_of,
    rounding,
    small_cases,
    tensors_of,
)

__all__ = [
    "by_reference",
    "call",
    "distance",
    "dtype_of",
    "out_of",
    "random_tensor",
    "results_of",
    "rounding",
    "small_cases",
    "tensors_of",
]

CALLABLE = tuple(name for name in heddle.ops.NAMES if heddle.ops.info(name).callable)
WITH_GRADIENT = [name for name in CALLABLE if heddle.ops.info(name).gradient]


def float_case(name):
    """A case of float32 with few elements, and its inputs that have gradients."""
    written = {
        value
        for op, names in heddle.ops.info(name).gradient
        for value in (names.get(o.field, o.field) for o in heddle.ops.info(op).results)
    }
    for number, case in small_cases(name):
        floats = [each for each in case["tensors"].values() if each[0] != "int64"]
        if any(dtype != "float32" or max(sizes) > 130 for dtype, sizes, _ in floats):
            continue
        if any(sizes[0] == 1 for _, sizes, _ in floats):
            continue
        return (
            number,
            case,
            [each.name for each in heddle.ops.info(name).inputs if f"d{each.field}" in written],
        )
    raise AssertionError(f"{name} has no small case of float32")


def with_gaps(value):
    """Copies values into rows with unused elements between them."""
    wide = value.new_full((*value.shape[:-1], value.shape[-1] + 3), -7)
    wide[..., : value.shape[-1]] = value
    return wide[..., : value.shape[-1]]


def plain_case(name):
    """The first case whose tensors NumPy can hold, with two rows at least."""
    for number, case in small_cases(name):
        tensors = case["tensors"]
        if all(dtype in ("float32", "int32") for dtype, _, _ in tensors.values()) and all(
            sizes[0] > 1 and not turned for _, sizes, turned in tensors.values()
        ):
            return number, case
    if any(set(each.dtypes) == {"float8_e4m3fn", "float8_e5m2"} for each in heddle.ops.info(name).inputs):
        pytest.skip(f"{name} takes fp8 alone, which NumPy cannot hold")
    raise AssertionError(f"{name} has no case of float32")


def check_rows_with_gaps(name, place=lambda inputs: inputs, error=0.0):
    """Reads and writes rows with gaps, where `place` puts the inputs: no copy, whole gaps, the same values.

    `error` is as in distance(). A GPU adds up rows that are not words of 16 bytes in another order.
    """
    number, case = plain_case(name)
    inputs = place(tensors_of(name, number, case))
    wanted = call(name, inputs, case)
    out = tuple(with_gaps(torch.zeros_like(one)) for one in wanted)
    made = call(name, {key: with_gaps(value) for key, value in inputs.items()}, case, out=out)
    assert heddle.last_path().copies == 0
    for one, other, given in zip(made, wanted, out, strict=True):
        assert one is given
        assert distance(one, other) <= error
        if one.dim() > 1:
            assert (one.as_strided(one.shape[:-1], one.stride()[:-1], one.shape[-1]) == -7).all()
