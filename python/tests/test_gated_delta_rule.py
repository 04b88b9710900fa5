"""heddle.ops.gated_delta_rule against the recurrence as torch computes it, with its gradients."""

import pytest
import torch

import heddle


def vectors(positions, heads=2, keys=24, values=40, dtype=torch.float32):
    generator = torch.Generator().manual_seed(positions)
    q, k, v = (torch.randn(2, positions, heads, n, generator=generator) for n in (keys, keys, values))
    g, beta = (torch.rand(2, positions, heads, generator=generator) for _ in range(2))
    k = torch.nn.functional.normalize(k, dim=-1)
    return [x.to(dtype) for x in (q, k, v)] + [-g, beta]


def recurrence(q, k, v, g, beta, state):
    """y [b, t, h, e] and the last state [b, h, d, e], position by position."""
    rows = []
    for t in range(q.shape[1]):
        state = state * g[:, t, :, None, None].exp()
        error = v[:, t] - torch.einsum("bhde,bhd->bhe", state, k[:, t])
        state = state + torch.einsum("bhd,bhe->bhde", k[:, t] * beta[:, t, :, None], error)
        rows.append(torch.einsum("bhde,bhd->bhe", state, q[:, t]) / q.shape[-1] ** 0.5)
    return torch.stack(rows, 1), state


@pytest.mark.parametrize("positions", [1, 32, 75])
def test_values_and_gradients_are_those_of_the_recurrence(positions):
    given = [*vectors(positions), torch.randn(2, 2, 24, 40, generator=torch.Generator().manual_seed(1))]
    ours, theirs = ([x.clone().requires_grad_() for x in given] for _ in range(2))
    y, last, *_ = heddle.ops.gated_delta_rule(*ours)
    wanted, state = recurrence(*theirs)
    torch.testing.assert_close(y, wanted, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(last, state, atol=1e-5, rtol=1e-5)
    weights = torch.randn(y.shape, generator=torch.Generator().manual_seed(2))
    ((y * weights).sum() + last.square().sum()).backward()
    ((wanted * weights).sum() + state.square().sum()).backward()
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a.grad, b.grad, atol=1e-4, rtol=1e-4)


def test_any_cut_and_each_run_give_the_same_bits():
    given = vectors(90)
    y, last, *_ = heddle.ops.gated_delta_rule(*given)
    for cut in (1, 32, 50):
        begin, state, *_ = heddle.ops.gated_delta_rule(*(x[:, :cut] for x in given))
        end, end_state, *_ = heddle.ops.gated_delta_rule(*(x[:, cut:] for x in given), s0=state)
        assert torch.equal(torch.cat((begin, end), 1), y)
        assert torch.equal(end_state, last)

    def gradients():
        leaves = [x.clone().requires_grad_() for x in given]
        heddle.ops.gated_delta_rule(*leaves)[0].square().sum().backward()
        return [x.grad for x in leaves]

    for a, b in zip(gradients(), gradients(), strict=True):
        assert torch.equal(a, b)


def test_narrow_values_are_near():
    given = vectors(40, dtype=torch.bfloat16)
    y = heddle.ops.gated_delta_rule(*given)[0]
    wanted, _ = recurrence(*(x.float() for x in given), torch.zeros(2, 2, 24, 40))
    assert y.dtype == torch.bfloat16
    torch.testing.assert_close(y.float(), wanted, atol=2e-2, rtol=2e-2)


def test_shapes_that_do_not_fit_are_refused():
    q, k, v, g, beta = vectors(5)
    with pytest.raises(heddle.Error, match=r"\[gated_delta_rule\] v is"):
        heddle.ops.gated_delta_rule(q, k, v[:, :4], g, beta)
    with pytest.raises(heddle.Error, match=r"\[gated_delta_rule\] s0 is"):
        heddle.ops.gated_delta_rule(q, k, v, g, beta, s0=torch.zeros(2, 2, 40, 24))
