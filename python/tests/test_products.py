"""Products of batches and of fp8, against torch's."""

import pytest
import torch

import heddle

GENERATOR = torch.Generator().manual_seed(5)
F8 = torch.float8_e4m3fn


def random(*shape, dtype=torch.float32):
    return torch.randn(*shape, generator=GENERATOR).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("along_m", [False, True])
@pytest.mark.parametrize("along_k", [False, True])
def test_batches_lie_in_any_order(dtype, along_m, along_k):
    a, b = random(3, 20, 33, dtype=dtype), random(3, 33, 17, dtype=dtype)
    a = a.mT.contiguous().mT if along_m else a
    b = b.mT.contiguous().mT if along_k else b
    made = heddle.ops.bmm(a, b)
    assert heddle.last_path().copies == 0
    torch.testing.assert_close(made, torch.bmm(a, b))


def test_batches_have_leading_dimensions_and_gaps():
    a, b = random(2, 5, 6, 40)[..., :32], random(2, 5, 32, 8)
    torch.testing.assert_close(heddle.ops.bmm(a, b), a @ b)
    assert heddle.ops.bmm(a[:, :0], b[:, :0]).shape == (2, 0, 6, 8)
    with pytest.raises(heddle.InvalidArgument, match="must be the same"):
        heddle.ops.bmm(random(3, 4, 8), random(2, 8, 4))


def quantized(x, rows, columns):
    """fp8 with a scale for each block of so many rows and columns."""
    blocks = x.unfold(0, rows, rows).unfold(1, columns, columns)
    scale = blocks.abs().amax((-1, -2)) / 448
    wide = scale.repeat_interleave(rows, 0).repeat_interleave(columns, 1)
    return (x / wide).to(F8), scale, (x / wide).to(F8).float() * wide


@pytest.mark.parametrize("kind", ["tensor", "rows", "blocks", "columns of blocks"])
@pytest.mark.parametrize("turned", [False, True])
def test_scales(kind, turned):
    m, n, k = 24, 256, 384
    rows = {"tensor": (m, k), "rows": (1, k)}.get(kind, (1, 128))
    columns = {"tensor": (k, n), "rows": (k, 1), "blocks": (128, 128)}.get(kind, (128, 1))
    a, scale_a, left = quantized(random(m, k), *rows)
    b, scale_b, right = quantized(random(k, n), *columns)
    if turned:  # as torch wants them: b in columns, and scales of blocks next to each other along m
        b, scale_a = b.t().contiguous().t(), scale_a.t().contiguous().t()
    made = heddle.ops.scaled_mm(a, b, scale_a, scale_b)
    assert made.dtype == torch.bfloat16
    torch.testing.assert_close(made, (left @ right).to(torch.bfloat16), atol=0.05, rtol=0.02)


def test_scales_as_torch():
    a, scale_a, _ = quantized(random(32, 64), 32, 64)
    b, scale_b, _ = quantized(random(64, 48), 64, 48)
    b = b.t().contiguous().t()
    wanted = torch._scaled_mm(a, b, scale_a, scale_b, out_dtype=torch.bfloat16)
    made = heddle.ops.scaled_mm(a, b, scale_a.reshape(1), scale_b)
    torch.testing.assert_close(made, wanted, atol=0.05, rtol=0.02)
    fast = heddle.ops.scaled_mm(a, b, scale_a, scale_b, fast_sums=True)
    torch.testing.assert_close(fast, wanted, atol=0.05, rtol=0.02)
    with pytest.raises(heddle.InvalidArgument, match=r"scale_b is \[1, 7\].* must be \[1, 1\] or \[1, 48\]"):
        heddle.ops.scaled_mm(a, b, scale_a, torch.ones(1, 7))


@pytest.mark.parametrize(
    ("m", "n", "k"), [(1, 64, 300), (3, 30, 65), (7, 64, 256), (2, 96, 4096), (65, 40, 1000)]
)
def test_sums_in_f32_are_sums_of_short_runs(m, n, k):
    # Terms of one sign: added one by one, their errors are 2e-7 at 256 terms, and torch's at most 2.3e-7.
    a, b = random(m, k).abs(), random(k, n).abs()
    exact = a.double() @ b.double()
    error = (heddle.ops.matmul(a, b).double() - exact).square().mean().sqrt() / exact.square().mean().sqrt()
    assert error < 1e-7
    assert torch.equal(heddle.ops.matmul(a[:1], b), heddle.ops.matmul(a, b)[:1])  # any number of rows
