"""y = a b^T of two matrices in codes: heddle's scaled_mm or torch's on a GPU, an exact emulation on a CPU."""

import functools

import torch

from heddle import ops
from heddle.float8.casts import BLOCK

EMULATED = "emulated in f32: a CPU has no products of fp8"
BY_TORCH = "its weight's gradient by torch._scaled_mm"  # where both sides have blocks


@functools.cache
def has_products(device):
    return device.type == "cuda" and torch.cuda.get_device_capability(device) == (9, 0)


def _has_blocks(coded):
    return coded.scales.shape[1] > 1 and coded.scales.shape[0] == coded.codes.shape[0]


def _is_of_torch(a, b, dtype):
    """True for products of blocks of 1 x 128 by such blocks, for which heddle has no kernel with wgmma."""
    return (
        _has_blocks(a) and _has_blocks(b) and a.codes.shape[1] % (4 * BLOCK) == 0 and dtype == torch.bfloat16
    )


def by_torch(a, b, dtype, fast):
    # cuBLAS wants scales of blocks with the lines side by side, but those of squares as they are.
    left = a.scales.t().contiguous().t() if _has_blocks(a) else a.scales
    right = b.scales.t().contiguous() if _has_blocks(b) else b.scales.contiguous().t()
    return torch._scaled_mm(a.codes, b.codes.t(), left, right, out_dtype=dtype, use_fast_accum=fast)


def multiply(a, b, dtype, fast=False):
    """y [La, Lb] in `dtype`, of Coded a [La, T] and b [Lb, T]. fast: sums may have 14 bits of fraction."""
    if a.codes.device.type == "cpu":
        with torch.autocast("cpu", enabled=False):
            return (a.values() @ b.values().t()).to(dtype)
    if _is_of_torch(a, b, dtype):
        return by_torch(a, b, dtype, fast)
    return by_heddle(a, b, dtype, fast)


def by_heddle(a, b, dtype, fast):
    y = torch.empty(a.codes.shape[0], b.codes.shape[0], dtype=dtype, device=a.codes.device)
    scales = b.scales.t()
    if scales.shape[0] > 1:
        scales = scales.contiguous()  # the kernel brings those of single columns in words of a row
    return ops.scaled_mm(a.codes, b.codes.t(), a.scales, scales, fast_sums=fast, out=y)
