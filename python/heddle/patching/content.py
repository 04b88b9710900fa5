"""Digests the contents of tensors. Nothing else says whether a tensor was written.

Fused optimizers, `.data`, and libraries that have the same memory do not raise its version. On a CPU a digest
takes the time of reading the memory once. On a GPU it is computed where the tensors lie.
"""

import functools

import torch

from heddle import _heddle

_WORDS = 1 << 23  # words of 4 bytes that a GPU multiplies at once: intermediate results stay in its cache


def _bytes(tensor):
    """The memory of a plain tensor, dense, as bytes."""
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)


@functools.cache
def _factors(device):
    """Odd numbers, which differ from place to place."""
    made = torch.Generator(device="cpu").manual_seed(0)
    numbers = torch.randint(-(2**31), 2**31, (_WORDS,), dtype=torch.int32, device="cpu", generator=made)
    return (numbers | 1).to(device)


def _sums(tensor):
    """Sums of the memory's words times numbers of their places, modulo 2^32 each."""
    memory = _bytes(tensor)
    if memory.storage_offset() % 4:
        memory = memory.clone()
    whole = memory.numel() // 4 * 4
    words = memory[:whole].view(torch.int32)
    factors = _factors(tensor.device)
    made = [(part * factors[: len(part)]).sum(dtype=torch.int64) for part in words.split(_WORDS) if len(part)]
    return made + [each.long() for each in memory[whole:]]


@torch.no_grad()
def digest(tensors):
    """A value that is equal for equal memory. The tensors are plain ones, on one device, CPU or GPU."""
    tensors = list(tensors)
    if any(each.is_cuda for each in tensors):
        made = [number for each in tensors for number in _sums(each)]
        return tuple(torch.stack(made).tolist()) if made else ()
    memory = [_bytes(each) for each in tensors]
    return _heddle.digest_memory(
        [(each.data_ptr(), each.numel()) for each in memory], torch.get_num_threads()
    )
