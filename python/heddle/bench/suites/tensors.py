"""Tensors of the suites."""

import torch

from heddle.bench.timing import is_gpu


def dtype_of(device):
    """bf16 where the device computes in it; torch's CPU kernels are made for float32."""
    return torch.bfloat16 if is_gpu(device) else torch.float32


def randn(device, *shape, dtype=None):
    return torch.randn(*shape, device=device).to(dtype or dtype_of(device))


def size_of(device):
    return torch.empty(0, dtype=dtype_of(device)).element_size()
