"""y = a b^T of two matrices in codes: heddle's scaled_mm or torch's on a GPU, an exact emulation on a CPU."""

import functools

import torch

from heddle import ops

EMULATED = "emulated in f32: a CPU has no products of fp8"


@functools.cache
def has_products(device):
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= (9, 0)


def _of_torch(a, b, dtype):
    """True where torch's product is the faster one, as measured on an H200."""
    return False


def by_torch(a, b, dtype, fast):
    # cuBLAS wants scales of blocks with the lines side by side.
    left = a.scales.t().contiguous().t() if a.scales.shape[1] > 1 else a.scales
    right = b.scales.contiguous().t()
    return torch._scaled_mm(a.codes, b.codes.t(), left, right, out_dtype=dtype, use_fast_accum=fast)


def multiply(a, b, dtype, fast=False):
    """y [La, Lb] in `dtype`, of Coded a [La, T] and b [Lb, T]. fast: sums may have 14 bits of fraction."""
    if a.codes.device.type == "cpu":
        with torch.autocast("cpu", enabled=False):
            return (a.values() @ b.values().t()).to(dtype)
    if _of_torch(a, b, dtype):
        return by_torch(a, b, dtype, fast)
    return by_heddle(a, b, dtype, fast)


def by_heddle(a, b, dtype, fast):
    y = torch.empty(a.codes.shape[0], b.codes.shape[0], dtype=dtype, device=a.codes.device)
    scales = b.scales.t()
    if scales.shape[0] > 1:
        scales = scales.contiguous()  # the kernel brings those of single columns in words of a row
    return ops.scaled_mm(a.codes, b.codes.t(), a.scales, scales, fast_sums=fast, out=y)
