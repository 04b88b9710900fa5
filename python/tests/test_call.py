"""Every op of the registry on tensors of NumPy and torch."""

import contextlib

import numpy
import pytest
import torch

import heddle
from heddle.ops.info import info
from op_cases import (
    CALLABLE,
    by_reference,
    call,
    check_rows_with_gaps,
    distance,
    plain_case,
    rounding,
    small_cases,
    tensors_of,
)


@pytest.mark.parametrize("name", CALLABLE)
def test_agrees_with_its_reference(name):
    ran = 0
    for number, case in small_cases(name):
        inputs = tensors_of(name, number, case)
        made = call(name, inputs, case)
        path = heddle.last_path()
        assert (path.op, path.backend, path.copies) == (name, "kernel", 0)
        assert (path.body, path.why_no_kernel) == (name, "")
        wanted = by_reference(name, inputs, case)
        assert heddle.last_path().backend == "reference"
        for one, other in zip(made, wanted, strict=True):
            assert one.dtype == other.dtype
            assert distance(one, other) <= case["bound"] + rounding(one.dtype), case
        ran += 1
    assert ran > 0


@pytest.mark.parametrize("name", CALLABLE)
def test_numpy_has_the_same_bits(name):
    number, case = plain_case(name)
    if "code" in case["attributes"]:
        case["attributes"]["code"] = "i8"  # NumPy has no floats of 8 bits
    inputs = tensors_of(name, number, case)
    wanted = call(name, inputs, case)
    outs = [one.numpy().copy() for one in wanted]
    arrays = {key: value.numpy() for key, value in inputs.items()}
    made = call(name, arrays, case, out=tuple(outs))
    for one, other in zip(made, wanted, strict=True):
        assert type(one) is numpy.ndarray
        assert one.tobytes() == other.numpy().tobytes()


@pytest.mark.parametrize("name", CALLABLE)
def test_reads_and_writes_rows_with_gaps(name):
    check_rows_with_gaps(name)


def takes_leading(name):
    return any(each.lead >= 0 for each in info(name).inputs)


def unfold(name, inputs, shape_of_rows):
    """Inputs whose first dimension is in several."""
    leads = {each.name for each in info(name).inputs if each.lead >= 0}
    return {
        key: value.reshape(*shape_of_rows(value.shape[0]), *value.shape[1:]) if key in leads else value
        for key, value in inputs.items()
    }


@pytest.mark.parametrize("name", [name for name in CALLABLE if takes_leading(name)])
def test_takes_leading_dimensions(name):
    number, case = plain_case(name)
    inputs = tensors_of(name, number, case)
    wanted = call(name, inputs, case)
    many = unfold(name, inputs, lambda rows: (1, rows, 1))
    outputs = info(name).results
    out = None
    if any(each.name in case["tensors"] for each in outputs):
        out = tuple(torch.empty(1, one.shape[0], 1, *one.shape[1:], dtype=one.dtype) for one in wanted)
    made = call(name, many, case, out=out)
    for output, one, other in zip(outputs, made, wanted, strict=True):
        lead = (1, other.shape[0], 1) if output.lead >= 0 else other.shape[:1]
        assert one.shape == (*lead, *other.shape[1:])
        assert torch.equal(one.reshape(other.shape), other)


@pytest.mark.parametrize("name", [name for name in CALLABLE if takes_leading(name)])
def test_empty_tensors_make_empty_ones_or_say_why(name):
    number, case = plain_case(name)
    leads = {each.name: each.lead for each in info(name).inputs}
    inputs = {
        key: value[:0] if leads[key] >= 0 else value for key, value in tensors_of(name, number, case).items()
    }
    results = info(name).results
    # expert_sum counts rows of x for each row of share, and finds no such number in nothing.
    if name == "column_sum":
        assert not call(name, inputs, case)[0].any()
    elif all(each.lead >= 0 for each in results) and name != "expert_sum":
        out = None
        if any(each.name in case["tensors"] for each in results):
            pytest.skip("only the caller knows the sizes of its outputs")
        made = call(name, inputs, case, out=out)
        assert all(one.numel() == 0 for one in made)
    else:
        # Sums over no rows: nothing is right to return without a run.
        with pytest.raises(heddle.InvalidArgument, match=name):
            call(name, inputs, case)


def test_an_empty_dimension_of_an_output_is_empty():
    assert heddle.ops.transpose(torch.empty(3, 0)).shape == (0, 3)


def test_sums_over_nothing():
    assert torch.equal(heddle.ops.matmul(torch.empty(3, 0), torch.empty(0, 5)), torch.zeros(3, 5))
    assert torch.equal(heddle.ops.bmm(torch.empty(2, 3, 0), torch.empty(2, 0, 5)), torch.zeros(2, 3, 5))
    out = torch.ones(3, 5)
    assert heddle.ops.matmul(torch.empty(3, 0), torch.empty(0, 5), out=out) is out
    assert not out.any()
    q, none = torch.randn(1, 3, 2, 8, requires_grad=True), torch.empty(1, 0, 2, 8, requires_grad=True)
    y, lse = heddle.ops.flash_attention(q, none, none)
    assert not y.any()
    assert (lse == -torch.inf).all()
    y.sum().backward()
    assert not q.grad.any()
    assert none.grad.shape == none.shape
    # Every other op with a dimension that is empty says so, or has nothing to give.
    for name in CALLABLE:
        number, case = next(iter(small_cases(name)))
        inputs = tensors_of(name, number, case)
        for dim in {dim.name for each in info(name).inputs if each.name in inputs for dim in each.dims}:
            given = {
                each.name: inputs[each.name][
                    tuple(slice(0, 0 if dim == at.name and dim else None) for at in each.dims)
                ]
                for each in info(name).inputs
                if each.name in inputs
            }
            with contextlib.suppress(heddle.Error):
                call(name, given, case)


def test_scattered_inputs_are_copied_once_and_last_path_says_so():
    x, weight = torch.randn(6, 8), torch.randn(8)
    wanted = heddle.ops.rms_norm(x, weight)
    turned = x.T.contiguous().T
    assert torch.equal(heddle.ops.rms_norm(turned, weight), wanted)
    assert heddle.last_path().copies == 1
    halves = torch.randn(4, 3, 8)[::2].transpose(0, 1)
    assert torch.equal(heddle.ops.rms_norm(halves, weight), heddle.ops.rms_norm(halves.contiguous(), weight))


def test_a_matrix_in_columns_is_not_copied():
    a, b = torch.randn(5, 6), torch.randn(7, 6)
    assert torch.allclose(heddle.ops.matmul(a, b.T), a @ b.T, atol=1e-5)
    assert heddle.last_path().copies == 0


def test_optional_tensors():
    x, weight, bias = torch.randn(3, 8), torch.randn(8), torch.randn(8)
    wanted = torch.nn.functional.layer_norm(x, (8,), weight, bias)
    assert torch.allclose(heddle.ops.layer_norm(x, weight, bias), wanted, atol=1e-5)
    assert torch.allclose(heddle.ops.layer_norm(x, weight, bias=bias), wanted, atol=1e-5)
    without = torch.nn.functional.layer_norm(x, (8,), weight)
    assert torch.allclose(heddle.ops.layer_norm(x, weight, None), without, atol=1e-5)


def test_optional_outputs_are_made_where_they_are_given():
    a, b = torch.randn(3, 8), torch.randn(3, 8)
    copy = torch.empty(3, 8)
    y, same = heddle.ops.add(a, b, out={"copy": copy})
    assert same is copy
    assert torch.equal(y, a + b)
    assert torch.equal(copy, y)


def test_attributes_take_names_numbers_and_flags():
    x = torch.randn(3, 8)
    for kind in ("silu", "gelu"):
        wanted = getattr(torch.nn.functional, kind)(x)
        assert torch.allclose(heddle.ops.activation(x, kind=kind), wanted, atol=1e-5)
    ones = torch.ones(8)
    same = [heddle.ops.rms_norm(x, ones, eps=eps) for eps in (1, 1.0, numpy.float32(1), numpy.int64(1))]
    assert all(torch.equal(one, same[0]) for one in same)


def test_in_place_where_the_op_allows_it():
    x, y = torch.randn(4, 8), torch.randn(4, 8)
    wanted = x + y
    heddle.ops.add(x, y, out=x)
    assert torch.equal(x, wanted)


def test_other_columns_of_one_matrix_are_no_shared_memory():
    both = torch.randn(4, 16)
    wanted = heddle.ops.softmax(both[:, :8].clone())
    heddle.ops.softmax(both[:, :8], out=both[:, 8:])
    assert torch.equal(both[:, 8:], wanted)


def test_older_libraries_without_exchange_tables():
    from heddle import _heddle

    x, weight = torch.randn(3, 8, requires_grad=True), torch.randn(8)
    wanted = heddle.ops.rms_norm(x.detach(), weight)
    _heddle.use_exchange_tables(False)
    try:
        assert torch.equal(heddle.ops.rms_norm(x.detach(), weight), wanted)
        with torch.no_grad():
            assert torch.equal(heddle.ops.rms_norm(x, weight), wanted)
    finally:
        _heddle.use_exchange_tables(True)


def test_negated_views_are_read_as_they_are():
    x = torch.complex(torch.randn(4, 8), torch.randn(4, 8))
    assert x.conj().imag.is_neg()
    for view in (x.conj().imag, x.conj().imag[:, :1]):
        weight = torch.ones(view.shape[1])
        assert torch.equal(heddle.ops.rms_norm(view, weight), heddle.ops.rms_norm(view.clone(), weight))


def test_mm_is_the_product_of_matrices():
    assert heddle.ops.mm is heddle.ops.matmul
    assert "mm" in heddle.ops.__all__


@pytest.mark.parametrize("module", ["jaxlib._jax", "tensorflow.python.framework.ops"])
def test_an_output_that_never_changes_is_refused(module):
    """Arrays of JAX are immutable, and their capsules cannot say so."""

    class Array:
        def __init__(self, values):
            self.values = values

        def __dlpack__(self, **_):
            return self.values.__dlpack__()

        def __dlpack_device__(self):
            return self.values.__dlpack_device__()

    Array.__module__ = module
    values = numpy.zeros((2, 8), "f")
    with pytest.raises(
        heddle.InvalidArgument, match=r"\[softmax\] y is a .*, which never changes; must be writ"
    ):
        heddle.ops.softmax(Array(numpy.ones((2, 8), "f")), out=Array(values))
    assert not values.any()
