"""Inputs of an op's own cases, made as tensors of NumPy or torch."""

import math

import numpy
import torch

import heddle.ops
from heddle import _heddle

CALLABLE = tuple(name for name in heddle.ops.NAMES if heddle.ops.info(name).callable)
WITH_GRADIENT = [name for name in CALLABLE if heddle.ops.info(name).gradient]
MOST_ELEMENTS = 40000  # larger cases are left to the tests of the bodies themselves


def dtype_of(name):
    return getattr(torch, name, None)


def small_cases(name):
    """(number, case) of those that torch can hold and that take little time."""
    for number, case in enumerate(_heddle.cases(name)):
        tensors = case["tensors"].values()
        known = all(dtype_of(dtype) is not None and dtype != "int4" for dtype, _, _ in tensors)
        if known and all(math.prod(sizes) <= MOST_ELEMENTS for _, sizes, _ in tensors):
            yield number, case


def random_tensor(generator, dtype, sizes):
    if dtype in ("int32", "int8"):
        low, high = (0, 1 << 20) if dtype == "int32" else (-127, 128)
        values = torch.from_numpy(generator.integers(low, high, sizes))
    else:
        values = torch.from_numpy(generator.uniform(-1, 1, sizes))
    return values.to(dtype_of(dtype)).contiguous()


def tensors_of(name, number, case, seed=0):
    """The inputs of a case as torch tensors, by name."""
    generator = numpy.random.default_rng(seed + number)
    names = [each.name for each in heddle.ops.info(name).inputs]
    stored = {
        key: random_tensor(generator, dtype, sizes)
        for key, (dtype, sizes, _) in case["tensors"].items()
        if key in names
    }
    _heddle.prepare_case(name, number, stored)
    return {key: value.T if case["tensors"][key][2] else value for key, value in stored.items()}


def out_of(name, case, device="cpu"):
    """Outputs whose sizes only the caller knows, in the order of the op's outputs; None for the others."""
    results = heddle.ops.info(name).results
    made = [
        torch.empty(
            case["tensors"][each.name][1], dtype=dtype_of(case["tensors"][each.name][0]), device=device
        )
        if each.name in case["tensors"]
        else None
        for each in results
    ]
    return None if all(each is None for each in made) else made


def results_of(results):
    """What an op returns, as a tuple."""
    return results if isinstance(results, tuple) else (results,)


def call(name, inputs, case, **more):
    out = more.pop("out", None)
    if out is None:
        device = getattr(next(iter(inputs.values())), "device", "cpu")
        out = out_of(name, case, device if isinstance(device, torch.device) else "cpu")
    return results_of(getattr(heddle.ops, name)(**inputs, **case["attributes"], out=out, **more))


def by_reference(name, inputs, case, **more):
    heddle.set_backend(name, "reference")
    try:
        return call(name, inputs, case, **more)
    finally:
        heddle.set_backend(name, "kernel")


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
    """The same values in rows that have elements of nobody between them."""
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
    raise AssertionError(f"{name} has no case of float32")


def check_rows_with_gaps(name, place=lambda inputs: inputs):
    """Reads and writes rows with gaps, where `place` puts the inputs: no copy, the same bits, whole gaps."""
    number, case = plain_case(name)
    inputs = place(tensors_of(name, number, case))
    wanted = call(name, inputs, case)
    out = tuple(with_gaps(torch.zeros_like(one)) for one in wanted)
    made = call(name, {key: with_gaps(value) for key, value in inputs.items()}, case, out=out)
    assert heddle.last_path().copies == 0
    for one, other, given in zip(made, wanted, out, strict=True):
        assert one is given
        assert torch.equal(one, other)
        if one.dim() > 1:
            assert (one.as_strided(one.shape[:-1], one.stride()[:-1], one.shape[-1]) == -7).all()


def distance(made, wanted):
    """The largest |made - wanted| / (1 + |wanted|); two of no number are equal."""
    made, wanted = made.double(), wanted.double()
    error = (made - wanted).abs() / (1 + wanted.abs())
    same = (made == wanted) | (made.isnan() & wanted.isnan())
    return error.masked_fill(same, 0).max().item() if error.numel() else 0.0


def rounding(dtype):
    """Half a unit of the last place: what the reference's own result is rounded by."""
    return torch.finfo(dtype).eps if dtype.is_floating_point else 0.0
