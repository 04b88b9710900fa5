"""Products besides `mm` of the model's dtype: batches of matrices, tf32, and fp8 with scales."""

import torch

from heddle import ops
from heddle.bench.suites.tensors import randn, size_of
from heddle.bench.timing import is_gpu
from heddle.bench.work import BACKWARD, FORWARD, Amount, Work

BLOCK = 128  # rows and columns that share a scale
TF32_ROUNDING = 1e-3  # for two factors with 10 bits of fraction
LLAMA_8B = ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336))


def batch(peers, device, count, m, n, k, kind):
    """`count` products of x [m, k] and w; "nt" is x @ w.T with w [n, k]."""

    def exact(x, w):
        return torch.bmm(x, w.mT if kind == "nt" else w)

    def inputs(count, m, n, k):
        shape = (n, k) if kind == "nt" else (k, n)
        return [randn(device, count, m, k), randn(device, count, *shape)]

    moved, flops = count * (m * k + n * k + m * n) * size_of(device), 2.0 * count * m * n * k
    return Work(
        name=f"bmm {count} x {m} x {n} x {k} {kind}",
        ours=lambda x, w: ops.bmm(x, w.mT if kind == "nt" else w),
        exact=exact,
        peers=peers.only(torch=exact),
        inputs=inputs,
        shape=(count, m, n, k),
        amounts={FORWARD: Amount(moved, flops), BACKWARD: Amount(2 * moved, 2 * flops)},
    )


def tf32(peers, device, m, n, k):
    def exact(x, w):
        return x @ w.t()

    def theirs(x, w):
        torch.backends.cuda.matmul.allow_tf32 = True
        y = x @ w.t()
        torch.backends.cuda.matmul.allow_tf32 = False
        return y

    return Work(
        name=f"mm tf32 {m} x {n} x {k}",
        ours=lambda x, w: ops.mm(x, w.t(), allow_tf32=True),
        exact=exact,
        peers=peers.only(torch=theirs),
        inputs=lambda m, n, k: [randn(device, s, k, dtype=torch.float32) for s in (m, n)],
        shape=(m, n, k),
        amounts={FORWARD: Amount(4 * (m * k + n * k + m * n), 2.0 * m * n * k)},
        rounding=TF32_ROUNDING,
    )


def scale_shapes(by, m, n, k):
    if by == "blocks":
        return (m, k // BLOCK), (k // BLOCK, n // BLOCK)
    return ((m, 1), (1, n)) if by == "rows" else ((1, 1), (1, 1))


def spread_over(scale, shape):
    """A scale for each element."""
    for dim in (0, 1):
        scale = scale.repeat_interleave(shape[dim] // scale.shape[dim], dim)
    return scale


def scaled(peers, device, m, n, k, by, fast_sums=False):
    """fp8 with one scale of each matrix, of each row, or of each block of BLOCK."""

    def exact(a, b, scale_a, scale_b):
        left, right = (
            codes.float() * spread_over(scale, codes.shape)
            for codes, scale in ((a, scale_a), (b.t(), scale_b))
        )
        return (left @ right).to(torch.float32 if a.dtype == torch.float32 else torch.bfloat16)

    def theirs(a, b, scale_a, scale_b):
        return torch._scaled_mm(
            a, b.t(), scale_a, scale_b, out_dtype=torch.bfloat16, use_fast_accum=fast_sums
        )

    def inputs(m, n, k):
        codes = [randn(device, s, k, dtype=torch.float8_e4m3fn) for s in (m, n)]
        # cuBLAS wants the rows of scales of blocks to be the adjacent dimension, as those of b.t() are.
        scales = [torch.rand(shape[::-1], device=device).t() + 0.5 for shape in scale_shapes(by, m, n, k)]
        return [*codes, *scales]

    flops = 2.0 * m * n * k
    return Work(
        name=f"scaled_mm {m} x {n} x {k} by {by}{' fast' if fast_sums else ''}",
        ours=lambda a, b, sa, sb: ops.scaled_mm(a, b.t(), sa, sb, fast_sums=fast_sums),
        exact=exact,
        peers=peers.only(torch=theirs if is_gpu(device) else exact),
        inputs=inputs,
        shape=(m, n, k),
        amounts={FORWARD: Amount(m * k + n * k + 2 * m * n, flops)},
        rounding=TF32_ROUNDING if fast_sums else 0,  # fast sums have 14 bits of fraction
    )


def works(peers, device, tiny):
    if tiny or not is_gpu(device):
        side = 128 if tiny else 1024
        yield batch(peers, device, 2, side // 2, side // 2, side // 2, "nt")
        yield tf32(peers, device, side, side, side)
        for by in ("tensor", "rows", "blocks"):
            yield scaled(peers, device, side, side, side, by)
        return
    for count, m, n, k in (
        (16, 2048, 2048, 2048),
        (64, 512, 512, 512),
        (128, 1024, 128, 1024),
        (512, 128, 128, 128),
    ):
        for kind in ("nt", "nn"):
            yield batch(peers, device, count, m, n, k, kind)
    shapes = [(4096, 4096, 4096), (8192, 8192, 8192)]
    shapes += [(m, n, k) for m in (128, 2048) for n, k in LLAMA_8B]
    for shape in shapes:
        yield tf32(peers, device, *shape)
        yield scaled(peers, device, *shape, "rows", fast_sums=True)
        for by in ("rows", "blocks"):
            yield scaled(peers, device, *shape, by)
