"""An op's own cases as tensors of torch: what tests, checks and profilers call it with."""

import math

import numpy
import torch

from heddle import _heddle, ops
from heddle.ops.info import info as info_of
from heddle.own.cases import described_cases
from heddle.own.op import made_of, own_of
from heddle.paths import set_backend

MOST_ELEMENTS = 40000  # elements of a tensor; larger cases are left to the tests of the bodies themselves


def dtype_of(name):
    return getattr(torch, name, None)


def cases_of(name):
    """The cases of an op: {"name", "bound", "tensors": {name: (dtype, sizes, transposed)}, "attributes"}."""
    cls = own_of(name)
    return list(described_cases(cls)) if cls else _heddle.cases(name)


def small_cases(name):
    """(number, case) of those that torch can hold and that take little time."""
    for number, case in enumerate(cases_of(name)):
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
    names = [each.name for each in info_of(name).inputs]
    stored = {
        key: random_tensor(generator, dtype, sizes)
        for key, (dtype, sizes, _) in case["tensors"].items()
        if key in names
    }
    if own_of(name) is None:
        _heddle.prepare_case(name, number, stored)
    else:  # numbers of an op that nobody knows: those that index a small tensor
        stored = {key: each % 3 if each.dtype == torch.int32 else each for key, each in stored.items()}
    return {key: value.mT if case["tensors"][key][2] else value for key, value in stored.items()}


def out_of(name, case, device="cpu"):
    """Outputs whose sizes only the caller knows, in the order of the op's outputs; None for the others."""
    results = info_of(name).results
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
    """Returns an op's results as a tuple."""
    return results if isinstance(results, tuple) else (results,)


def call(name, inputs, case, **more):
    out = more.pop("out", None)
    if out is None:
        device = getattr(next(iter(inputs.values())), "device", "cpu")
        out = out_of(name, case, device if isinstance(device, torch.device) else "cpu")
    return results_of(function_of(name)(**inputs, **case["attributes"], out=out, **more))


def function_of(name):
    """The function of an op, of heddle's or of one's own."""
    return made_of(name).function if own_of(name) else getattr(ops, name)


def by_reference(name, inputs, case, **more):
    set_backend(name, "reference")
    try:
        return call(name, inputs, case, **more)
    finally:
        set_backend(name, "kernel")


def distance(made, wanted):
    """The largest |made - wanted| / (1 + |wanted|); two of no number are equal."""
    made, wanted = made.double(), wanted.double()
    error = (made - wanted).abs() / (1 + wanted.abs())
    same = (made == wanted) | (made.isnan() & wanted.isnan())
    return error.masked_fill(same, 0).max().item() if error.numel() else 0.0


def rounding(dtype):
    """Half a unit of the last place: what the reference's own result is rounded by."""
    return torch.finfo(dtype).eps if dtype.is_floating_point else 0.0
