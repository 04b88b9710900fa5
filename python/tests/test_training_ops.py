"""Norms with a residual, and AdamW, against torch's."""

import pytest
import torch

import heddle

functional = torch.nn.functional


def leaves(*shapes):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator, requires_grad=True) for shape in shapes]


def norms(kind, shape=(2, 5, 48)):
    """The inputs, heddle's function and torch's of them."""
    vector = shape[-1:]
    if kind == "rms_norm":
        return (
            leaves(shape, shape, vector),
            lambda x, r, w: heddle.ops.rms_norm_residual(x, r, w, eps=1e-5),
            lambda x, r, w: (functional.rms_norm(x + r, vector, w, 1e-5), x + r),
        )
    return (
        leaves(shape, shape, vector, vector),
        lambda x, r, w, b: heddle.ops.layer_norm_residual(x, r, w, b, eps=1e-5),
        lambda x, r, w, b: (functional.layer_norm(x + r, vector, w, b, 1e-5), x + r),
    )


@pytest.mark.parametrize("kind", ["rms_norm", "layer_norm"])
@pytest.mark.parametrize("used", [(0, 1), (0,), (1,)])
def test_norms_with_a_residual(kind, used):
    made, ours, torchs = norms(kind)
    other = [each.detach().clone().requires_grad_() for each in made]
    found, wanted = ours(*made), torchs(*other)
    for one, two in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, two, atol=1e-5, rtol=1e-5)
    given = [torch.randn_like(found[i]) for i in used]
    torch.autograd.backward([found[i] for i in used], given)
    torch.autograd.backward([wanted[i] for i in used], given)
    for one, two in zip(made, other, strict=True):
        two_grad = torch.zeros_like(two) if two.grad is None else two.grad
        torch.testing.assert_close(one.grad, two_grad, atol=1e-4, rtol=1e-4)


def test_the_norm_takes_the_sum_as_stored():
    x, residual, weight = (each.detach().bfloat16() for each in leaves((4, 64), (4, 64), (64,)))
    y, total = heddle.ops.rms_norm_residual(x, residual, weight)
    assert torch.equal(total, x + residual)
    assert torch.equal(y, heddle.ops.rms_norm(total, weight))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_adamw_in_place_is_that_of_torch(dtype):
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(7, 33, generator=generator).to(dtype)
    theirs = torch.nn.Parameter(start.float())
    optimizer = torch.optim.AdamW([theirs], lr=1e-2, betas=(0.9, 0.95), weight_decay=0.1)
    ours, mean, square = start.float(), torch.zeros(7, 33), torch.zeros(7, 33)
    narrow = start.clone()
    for step in range(1, 6):
        theirs.grad = torch.randn(7, 33, generator=generator).to(dtype).float()
        optimizer.step()
        options = {"lr": 1e-2, "beta1": 0.9, "beta2": 0.95, "weight_decay": 0.1, "step": step}
        state = (ours, mean, square)
        if dtype == torch.bfloat16:
            copies = (mean.clone(), square.clone())
            heddle.ops.adamw(narrow, theirs.grad.to(dtype), *copies, **options, out=(narrow, *copies))
            torch.testing.assert_close(narrow.float(), theirs.detach(), atol=1e-4, rtol=8e-3)
            narrow.copy_(theirs.detach())
        made = heddle.ops.adamw(ours, theirs.grad.to(dtype), mean, square, **options, out=state)
        assert made[0] is ours
        torch.testing.assert_close(ours, theirs.detach(), atol=2e-6, rtol=2e-5)
    state = optimizer.state[theirs]
    torch.testing.assert_close(mean, state["exp_avg"], atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(square, state["exp_avg_sq"], atol=1e-6, rtol=1e-5)


def test_adamw_of_a_vector_leaves_its_inputs():
    param, grad = torch.ones(5), torch.ones(5)
    new, mean, _ = heddle.ops.adamw(param, grad, torch.zeros(5), torch.zeros(5), lr=0.5, weight_decay=0.0)
    torch.testing.assert_close(new, torch.full((5,), 0.5))
    torch.testing.assert_close(mean, torch.full((5,), 0.1))
    assert torch.equal(param, torch.ones(5))
    with pytest.raises(heddle.InvalidArgument, match="step = 0"):
        heddle.ops.adamw(param, grad, mean, mean, step=0)


CODES = {"e4m3": (torch.float8_e4m3fn, 448), "e5m2": (torch.float8_e5m2, 57344), "i8": (torch.int8, 127)}


def rounded(x, code, group):
    """Codes and scales of groups of neighbours, as torch rounds."""
    dtype, largest = CODES[code]
    groups = x.float().split(group, -1)
    scales = [each.abs().amax(-1, keepdim=True) / largest for each in groups]
    codes = [each / scale for each, scale in zip(groups, scales, strict=True)]
    codes = torch.cat([each.round() if code == "i8" else each for each in codes], -1)
    return codes.to(dtype), torch.cat(scales, -1)


def assert_codes(made, wanted):
    """Equal but where a quotient lies on a border."""
    assert made.dtype == wanted.dtype
    other = made.float() != wanted.float()
    assert other.float().mean() < 0.01
    torch.testing.assert_close(made.float(), wanted.float(), atol=1, rtol=0.3)


@pytest.mark.parametrize("code", list(CODES))
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("by", "group"), [("row", 300), ("block", 128)])
def test_quantize(code, dtype, by, group):
    x = torch.randn(6, 300, generator=torch.Generator().manual_seed(0)).to(dtype)
    x[0] = 0
    codes, scales = heddle.ops.quantize(x, code=code, by=by)
    wanted, wanted_scales = rounded(x, code, group)
    torch.testing.assert_close(scales[1:], wanted_scales[1:], atol=0, rtol=1e-6)
    assert_codes(codes[1:], wanted[1:])
    assert not codes[0].float().any()


def test_quantize_both_layouts():
    x = torch.randn(132, 300, generator=torch.Generator().manual_seed(0)).bfloat16()
    codes, scales, turned, turned_scales = heddle.ops.quantize_both(x)
    for made, wanted in zip((codes, scales), heddle.ops.quantize(x, by="block"), strict=True):
        assert torch.equal(made.float(), wanted.float())
    other = heddle.ops.quantize(x.T.contiguous(), by="block")
    for made, wanted in zip((turned, turned_scales), other, strict=True):
        assert torch.equal(made.float(), wanted.float())


def test_codes_of_what_is_no_number_show():
    x = torch.randn(2, 8)
    x[0, 3] = torch.nan
    codes, _ = heddle.ops.quantize(x)
    # The largest of a row with NaN is NaN, and so are its scale and its codes.
    assert codes.float().isnan().all(1).tolist() == [True, False]
    assert not codes[1].float().isnan().any()


@pytest.mark.parametrize("code", ["e4m3", "e5m2"])
@pytest.mark.parametrize(("high", "wide"), [((1, 1), (1, 1)), ((132, 1), (300, 1)), ((2, 3), (3, 2))])
def test_quantize_at_scales_that_are_there(code, high, wide):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(132, 300, generator=generator).bfloat16()
    scales, turned_scales = (torch.rand(size, generator=generator) * 1e-2 + 1e-3 for size in (high, wide))
    dtype, largest = CODES[code]
    codes, turned = heddle.ops.quantize_at(x, scales, turned_scales, code=code)
    for made, value, scale in ((codes, x, scales), (turned, x.t(), turned_scales)):
        scale = scale.repeat_interleave(128, 0)[: len(value)] if scale.shape[1] > 1 else scale
        scale = scale.repeat_interleave(128, 1)[:, : value.shape[1]] if scale.shape[1] > 1 else scale
        assert_codes(made, (value.float() / scale).clamp(-largest, largest).to(dtype))
    assert (codes.float().abs() == largest).any() == (code == "e4m3")
    with pytest.raises(heddle.InvalidArgument, match=r"scales is \[2, 1\].*must be \[1, 1\] or \[132, 1\]"):
        heddle.ops.quantize_at(x, scales[:1, :1].expand(2, 1).contiguous(), turned_scales)
