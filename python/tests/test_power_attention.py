"""Power attention and symmetric powers against their definitions, in torch and fp64."""

import itertools
import math

import pytest
import torch

import heddle

FORMS = list(itertools.product((2, 4), (False, True), (False, True)))  # power, gates, normalise


def random_inputs(batch, length, heads, dim, columns, gates, dtype=torch.float32, seed=1):
    generator = torch.Generator().manual_seed(seed)

    def normal(*sizes):
        return torch.randn(sizes, generator=generator)

    q, k = normal(batch, length, heads, dim), normal(batch, length, heads, dim)
    v = normal(batch, length, heads, columns)
    # Keys near their queries keep the totals away from 0.
    made = [value.to(dtype) for value in (q, k + q, v)]
    log_gates = torch.nn.functional.logsigmoid(normal(batch, length, heads) + 2) if gates else None
    return [*made, log_gates]


def quadratic(q, k, v, log_gates, *, power, normalise, eps=1e-6):
    """The definition, in fp64."""
    q, k, v = (value.double() for value in (q, k, v))
    weights = (torch.einsum("bihd,bjhd->bhij", q, k) * q.shape[-1] ** -0.5) ** power
    if log_gates is not None:
        sums = log_gates.double().cumsum(1).movedim(1, 2)
        weights = weights * (sums[..., :, None] - sums[..., None, :]).tril().exp()
    weights = weights.tril()
    y = torch.einsum("bhij,bjhe->bihe", weights, v)
    return y / (weights.sum(-1).movedim(1, 2)[..., None] + eps) if normalise else y


def error(made, wanted):
    return ((made.double() - wanted).norm() / wanted.norm()).item()


@pytest.mark.parametrize(("power", "gates", "normalise"), FORMS)
@pytest.mark.parametrize("chunk", [5, 16, 64])
def test_chunks_give_the_quadratic_form_and_its_gradient(power, gates, normalise, chunk):
    inputs = random_inputs(2, 37, 2, 8, 12, gates)
    mine = [None if value is None else value.clone().requires_grad_() for value in inputs]
    other = [None if value is None else value.clone().requires_grad_() for value in inputs]
    y = heddle.power_attention(*mine, power=power, normalise=normalise, chunk=chunk)
    wanted = quadratic(*other, power=power, normalise=normalise)
    assert error(y, wanted) < 1e-5
    dy = torch.randn(y.shape, generator=torch.Generator().manual_seed(2))
    y.backward(dy)
    wanted.backward(dy.double())
    for one, two in zip(mine, other, strict=True):
        if one is not None:
            assert error(one.grad, two.grad.double()) < 5e-5


@pytest.mark.parametrize(("power", "gates", "normalise"), FORMS)
def test_a_state_continues(power, gates, normalise):
    inputs = random_inputs(2, 40, 2, 8, 12, gates)
    mine = [None if value is None else value.clone().requires_grad_() for value in inputs]
    other = [None if value is None else value.clone().requires_grad_() for value in inputs]
    form = {"power": power, "normalise": normalise}

    def part(begin, end):
        return [None if value is None else value[:, begin:end] for value in mine]

    first, state = heddle.power_attention(*part(0, 23), **form, chunk=8, return_state=True)
    second = heddle.power_attention(*part(23, 40), **form, chunk=8, state=state)
    y = torch.cat((first, second), 1)
    wanted = quadratic(*other, **form)
    assert error(y, wanted) < 1e-5
    dy = torch.randn(y.shape, generator=torch.Generator().manual_seed(2))
    y.backward(dy)
    wanted.backward(dy.double())
    for one, two in zip(mine, other, strict=True):
        if one is not None:
            assert error(one.grad, two.grad.double()) < 5e-5


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_narrow_floats(dtype):
    inputs = random_inputs(1, 150, 2, 32, 32, True, dtype)
    y = heddle.power_attention(*inputs, chunk=64)
    assert y.dtype == dtype
    wanted = quadratic(*inputs, power=2, normalise=True)
    # States and what they give are rounded to the dtype, once each.
    assert error(y, wanted) < 4 * torch.finfo(dtype).eps


def test_numpy():
    inputs = random_inputs(1, 20, 2, 8, 8, True)
    y = heddle.power_attention(*(value.numpy() for value in inputs), chunk=8)
    assert torch.equal(torch.from_numpy(y), heddle.power_attention(*inputs, chunk=8))


@pytest.mark.parametrize("power", [2, 4])
def test_symmetric_power(power):
    q, k = torch.randn(5, 24, requires_grad=True), torch.randn(5, 24)
    made = (heddle.ops.sympow(q, power=power) * heddle.ops.sympow(k, power=power)).sum(-1)
    wanted = (q.double() * k.double()).sum(-1) ** power
    scale = (q.norm(dim=-1) * k.norm(dim=-1)).double() ** power
    assert ((made - wanted).abs() < 1e-5 * scale).all()
    (slope,) = torch.autograd.grad(made.sum(), q, retain_graph=True)
    (exact,) = torch.autograd.grad(wanted.sum(), q)
    assert error(slope, exact.double()) < 1e-3


def test_columns_are_in_the_order_that_is_written():
    """Blocks (s0, s1), s0 >= s1, by s0 and then s1; in a block the element of s1 varies fastest."""
    x = torch.randn(24)
    columns = [
        x[8 * s0 + i] * x[8 * s1 + j] * (1 if s0 == s1 else math.sqrt(2))
        for s0 in range(3)
        for s1 in range(s0 + 1)
        for i in range(8)
        for j in range(8)
    ]
    assert torch.allclose(heddle.ops.sympow(x[None])[0], torch.stack(columns))


def test_what_does_not_fit_is_named():
    q, k, v, _ = random_inputs(1, 4, 1, 12, 8, False)
    with pytest.raises(heddle.InvalidArgument, match="multiple of 8"):
        heddle.power_attention(q, k, v, chunk=2)
    q, k, v, _ = random_inputs(1, 4, 1, 8, 8, False)
    with pytest.raises(heddle.InvalidArgument, match="power = 3; must be 2 or 4"):
        heddle.power_attention(q, k, v, power=3)
