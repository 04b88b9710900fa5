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
    """Wrong stand-ins for a tensor: of another dtype, rank, size, place, layout or library."""
    yield "dtype", value.to(torch.complex64)
    yield "dtype", value.double() if value.is_floating_point() else value.bool()
    yield "rank", value[0]
    yield "rank", value.reshape(*value.shape, 1).expand(*value.shape, 2)
    yield "rank", value.flatten()[0]
    yield "size", torch.cat((value, value[:1]))
    yield "size", value[..., :-1]
    yield "size", value[:0]
    yield "place", value.to("meta")
    if value.element_size() > 1:  # torch makes no sparse tensor of fp8
        yield "layout", value.to_sparse()
    yield "layout", value.flatten()[:1].expand(value.shape)
    yield "library", value.float().numpy() if value.is_floating_point() else value.numpy()
    yield "type", value.tolist()
    yield "type", None


def attributes(each):
    """Wrong stand-ins for an attribute: of another type, or out of any range."""
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


X, WEIGHT, TARGET = torch.randn(5, 16), torch.randn(9, 16), torch.arange(5)
Q = torch.randn(1, 6, 2, 16)
COMPOSED = {
    heddle.linear_cross_entropy: (X, WEIGHT, TARGET),
    heddle.power_attention: (Q, Q, Q),
}


@pytest.mark.parametrize("function", COMPOSED, ids=lambda function: function.__name__)
def test_functions_that_are_composed_of_ops_refuse_by_name_too(function):
    right, name = COMPOSED[function], function.__name__
    function(*right)
    others = (3, "x", None, [1.0], torch.tensor(1.0), torch.ones(2, 3), torch.ones(1, 6, 2, 16).to("meta"))
    for at in range(3):
        for other in (*others, right[at].to(torch.complex64)):
            wrong = [*right[:at], other, *right[at + 1 :]]
            with pytest.raises(heddle.Error) as caught:
                function(*wrong)
            assert str(caught.value).startswith("["), (name, at, other)
    for key in ("chunk_rows",) if function is heddle.linear_cross_entropy else ("chunk",):
        for value in (-1, 2.5, "x"):
            with pytest.raises(heddle.InvalidArgument, match=key):
                function(*right, **{key: value})
