"""Gradients by the ops that each op names, against finite differences of its fp64 reference."""

import sys

import pytest
import torch

import heddle
from op_cases import WITH_GRADIENT, by_reference, float_case, results_of, tensors_of


@pytest.mark.parametrize("name", WITH_GRADIENT)
def test_gradients_are_those_of_the_reference(name):
    number, case, wanted = float_case(name)
    inputs = tensors_of(name, number, case)
    wanted = [key for key in wanted if key in inputs]
    for key in wanted:
        inputs[key] = inputs[key].clone().requires_grad_()
    results = results_of(getattr(heddle.ops, name)(**inputs, **case["attributes"]))
    generator = torch.Generator().manual_seed(1)
    given = [torch.randn(y.shape, generator=generator) for y in results]
    torch.autograd.backward(results, given)
    plain = {key: value.detach() for key, value in inputs.items()}

    def loss(key, value):
        made = by_reference(name, {**plain, key: value}, case)
        return sum((y.double() * dy).sum().item() for y, dy in zip(made, given, strict=True))

    step = 2.0**-7
    for key in wanted:
        direction = torch.randn(plain[key].shape, generator=torch.Generator().manual_seed(2))
        up, down = loss(key, plain[key] + step * direction), loss(key, plain[key] - step * direction)
        slope = (inputs[key].grad.double() * direction).sum().item()
        assert slope == pytest.approx((up - down) / (2 * step), rel=3e-2, abs=3e-2), key


def compare_with_torch(function, wanted, *inputs):
    made = [each.clone().requires_grad_() for each in inputs]
    other = [each.clone().requires_grad_() for each in inputs]
    y, z = function(*made), wanted(*other)
    assert torch.allclose(y, z, atol=1e-4)
    dy = torch.randn(y.shape)
    y.backward(dy)
    z.backward(dy)
    for one, two in zip(made, other, strict=True):
        assert one.grad.dtype == one.dtype
        assert torch.allclose(one.grad, two.grad, atol=1e-3, rtol=1e-3)


def test_leading_dimensions():
    functional = torch.nn.functional
    x, w, b = torch.randn(2, 3, 8), torch.randn(8), torch.randn(8)
    compare_with_torch(
        lambda x, w: heddle.ops.rms_norm(x, w, eps=1e-5),
        lambda x, w: functional.rms_norm(x, (8,), w, 1e-5),
        x,
        w,
    )
    compare_with_torch(heddle.ops.layer_norm, lambda x, w, b: functional.layer_norm(x, (8,), w, b), x, w, b)
    compare_with_torch(heddle.ops.matmul, torch.matmul, x, torch.randn(8, 5))
    compare_with_torch(heddle.ops.bias, torch.add, x, b)


def test_batches():
    compare_with_torch(heddle.ops.bmm, torch.bmm, torch.randn(3, 4, 8), torch.randn(3, 8, 5))
    compare_with_torch(heddle.ops.bmm, torch.matmul, torch.randn(2, 3, 4, 8), torch.randn(2, 3, 8, 5))
    compare_with_torch(heddle.ops.bmm, torch.bmm, torch.randn(3, 8, 4).mT, torch.randn(3, 5, 8).mT)


def test_expanded_gradients():
    x = torch.randn(3, 8, requires_grad=True)
    heddle.ops.softmax(x).sum().backward()
    assert x.grad.abs().max() < 1e-5


def test_only_what_is_wanted():
    weight = torch.randn(8, requires_grad=True)
    heddle.ops.rms_norm(torch.randn(3, 8), weight).sum().backward()
    assert weight.grad.shape == (8,)


def test_no_rows():
    x, weight = torch.empty(0, 8, requires_grad=True), torch.randn(8, requires_grad=True)
    heddle.ops.rms_norm(x, weight).sum().backward()
    assert x.grad.shape == (0, 8)
    assert torch.equal(weight.grad, torch.zeros(8))


def test_narrow_floats():
    x = torch.randn(3, 8, dtype=torch.bfloat16, requires_grad=True)
    weight = torch.randn(8, requires_grad=True)
    heddle.ops.rms_norm(x, weight).float().sum().backward()
    assert (x.grad.dtype, weight.grad.dtype) == (torch.bfloat16, torch.float32)


def test_sums_come_in_the_dtype_of_the_parameter():
    x, dy = torch.randn(2, 33, 64, dtype=torch.bfloat16)
    weight, bias = (torch.randn(64, dtype=torch.bfloat16, requires_grad=True) for _ in range(2))
    y = heddle.ops.layer_norm(x, weight, bias)
    with torch.autograd.profiler.profile() as profile:
        y.backward(dy)
    assert "aten::to" not in {event.name for event in profile.function_events}
    assert torch.equal(bias.grad, dy.double().sum(0).bfloat16())


def test_an_input_without_a_gradient_is_named():
    x, table = torch.randn(2, 8), torch.randn(2, 4, requires_grad=True)
    with pytest.raises(heddle.InvalidArgument, match="table requires a gradient"):
        heddle.ops.rope_rows(x, table, head_dim=4, rotary_dim=4, heads=2)


def test_whole_numbers_have_none():
    assert not heddle.ops.argmax(torch.randn(2, 8, requires_grad=True)).requires_grad


def test_twice_is_refused_where_an_op_of_the_gradient_has_none():
    x = torch.randn(3, 8, requires_grad=True)
    (dx,) = torch.autograd.grad(heddle.ops.softmax(x).pow(2).sum(), x, create_graph=True)
    with pytest.raises(heddle.Unsupported, match=r"\[softmax_backward\] .* no second derivative"):
        torch.autograd.grad(dx.sum(), x, allow_unused=True)
    with pytest.raises(heddle.Unsupported, match="requires a gradient"):
        heddle.ops.softmax_backward(x, torch.ones(3, 8))


def test_twice_is_right_where_each_op_of_the_gradient_has_one():
    a, b = torch.randn(3, 4, requires_grad=True), torch.randn(4, 5, requires_grad=True)
    made = []
    for product in (heddle.ops.matmul, torch.matmul):
        (da,) = torch.autograd.grad(product(a, b).pow(3).sum(), a, create_graph=True)
        made.append(torch.autograd.grad(da.pow(2).sum(), (a, b)))
    for one, other in zip(*made, strict=True):
        assert torch.allclose(one, other, rtol=1e-4, atol=1e-3)


def test_a_call_with_a_gradient_has_few_frames():
    """Each costs a tenth of a microsecond or more."""
    x, weight = torch.randn(4, 64, requires_grad=True), torch.ones(64, requires_grad=True)
    heddle.ops.rms_norm(x, weight)
    frames = []
    sys.setprofile(lambda frame, event, _: frames.append(frame.f_code.co_name) if event == "call" else None)
    try:
        heddle.ops.rms_norm(x, weight)
    finally:
        sys.setprofile(None)
    frames = [name for name in frames if name != "<listcomp>"]  # no frame in newer versions
    by_python = ["call_eager", "forward", "save_for_backward"]
    assert frames == {"python": by_python, "node": []}[heddle.last_path().gradient]
