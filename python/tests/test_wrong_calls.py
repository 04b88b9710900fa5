"""Wrong calls of every op, made of its fields: each is a named error or a result, and the process goes on."""

import math

import numpy
import pytest
import torch

import heddle
from heddle.ops.info import info
from op_cases import CALLABLE, call, small_cases, tensors_of

LEAST = 6  # wrong calls of an op that must be refused


def tensors(value):
    """What stands in for a tensor: of another dtype, rank, size, place, layout or library."""
    yield "dtype", value.to(torch.complex64)
    yield "dtype", value.double() if value.is_floating_point() else value.bool()
    yield "rank", value[0]
    yield "rank", value.reshape(*value.shape, 1).expand(*value.shape, 2)
    yield "rank", value.flatten()[0]
    yield "size", torch.cat((value, value[:1]))
    yield "size", value[..., :-1]
    yield "size", value[:0]
    yield "place", value.to("meta")
    yield "layout", value.to_sparse()
    yield "layout", value.flatten()[:1].expand(value.shape)
    yield "library", value.float().numpy() if value.dtype == torch.bfloat16 else value.numpy()
    yield "type", value.tolist()
    yield "type", None


def attributes(each):
    """What stands in for an attribute: of another type, or out of any range."""
    yield from ("text", b"bytes", [], {}, object(), torch.ones(2), 1 << 40, -(1 << 40), 1 << 200)
    if each.type == "float":
        yield from (math.nan, math.inf, -math.inf, -1.0, 1e300)
    elif each.type in ("int", "bool"):
        yield from (-1, -7, 2.5, (1 << 31) - 1, -(1 << 31))


def wrong_calls(name):
    """(what is wrong, inputs, case)"""
    number, case = min(
        small_cases(name), key=lambda one: sum(math.prod(sizes) for _, sizes, _ in one[1]["tensors"].values())
    )
    inputs = tensors_of(name, number, case)
    for key, value in inputs.items():
        for what, other in tensors(value):
            yield f"{what} of {key}", {**inputs, key: other}, case
    yield "no tensor", inputs, case
    yield "one tensor more", {**inputs, "no_such": torch.ones(2)}, case
    for each in info(name).attributes:
        for other in attributes(each):
            changed = {**case["attributes"], each.name: other}
            yield f"{each.name} = {other!r:.30}", inputs, {**case, "attributes": changed}


@pytest.mark.parametrize("name", CALLABLE)
def test_a_wrong_call_is_an_error_with_a_name(name):
    refused, passed = [], []
    for what, inputs, case in wrong_calls(name):
        try:
            if what == "no tensor":
                getattr(heddle.ops, name)()
            call(name, inputs, case)
        except heddle.Error as error:
            text = str(error)
            assert text.startswith(f"[{name}]"), (what, text)
            assert "\n" not in text, (what, text)
            refused.append(what)
        except Exception as error:
            raise AssertionError(f"{name} with {what} raised {error!r}") from error
        else:
            passed.append(what)
    assert len(refused) >= LEAST, passed
    number, case = next(iter(small_cases(name)))
    for one in call(name, tensors_of(name, number, case), case):
        assert numpy.prod(one.shape) == one.numel()
