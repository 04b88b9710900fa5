"""The states of a parameter: the means of its gradients and of their squares in f32, in bf16 or as codes of 8
bits, and for a bf16 parameter what its bits lack of those of an f32.

Widening and narrowing are exact in torch's whole numbers and comparisons, so that each device gives the bits
of the host's pass (heddle/backend/cpu/simd_adamw.cpp).
"""

import functools

import torch

from heddle import _heddle
from heddle.errors import InvalidArgument, Unsupported

BLOCK = 256  # elements that share a scale
LEAST_CODED = 4096  # elements of a parameter: the states of smaller ones stay in f32
KINDS = {torch.float32: 0, torch.bfloat16: 1, torch.uint8: 2}  # dtype of the means: AdamwState
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "int8": torch.uint8}
MEANS = {"exp_avg": True, "exp_avg_sq": False}  # torch's names, and whether they have a sign
MASK = 0xFFFFFFFF


def dtype_of(state_dtype, param):
    """The dtype of a parameter's means."""
    dtype = DTYPES[state_dtype]
    return torch.float32 if dtype == torch.uint8 and param.numel() < LEAST_CODED else dtype


def is_dense(tensor):
    """Its elements lie side by side, in any order of dimensions."""
    if tensor.is_contiguous():
        return True
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size != 1 and stride != expected:
            return tensor.numel() == 0
        expected *= size
    return True


def flat(tensor):
    """All elements, as they lie."""
    return tensor.detach().as_strided((tensor.numel(),), (1,))


def new(param, dtype, device, pin=False):
    """The states before the first step."""

    def zeros(like, dtype):
        made = torch.zeros(like.shape, dtype=dtype, device=device, pin_memory=pin)
        return made if like.is_contiguous() else made.as_strided(like.shape, like.stride())

    state = {"step": torch.tensor(0.0)}
    for name, signed in MEANS.items():
        state[name] = zeros(param, dtype)
        if dtype == torch.uint8:
            state[name].fill_(_zero_code(signed))
            blocks = -(-param.numel() // BLOCK)
            state[f"{name}_scale"] = torch.zeros(blocks, device=device, pin_memory=pin)
    if param.dtype == torch.bfloat16:
        state["residual"] = zeros(param, torch.int16)
    return state


def taken(param, saved, fresh):
    """Fills fresh states with saved ones, of torch's AdamW or of another kind."""
    if "max_exp_avg_sq" in saved:
        raise Unsupported("[heddle.optim] the saved states have max_exp_avg_sq: amsgrad is not supported")
    missing = [name for name in ("step", *MEANS) if name not in saved]
    if missing:
        raise InvalidArgument(f"[heddle.optim] the saved states lack {', '.join(missing)}; must be AdamW's")
    fresh["step"] = torch.tensor(float(saved["step"]))
    for name, signed in MEANS.items():
        values = saved[name]
        if values.shape != param.shape:
            raise InvalidArgument(
                f"[heddle.optim] the saved {name} is {list(values.shape)}; "
                f"must be {list(param.shape)}, as the parameter"
            )
        scale = saved.get(f"{name}_scale")
        if values.dtype == torch.uint8 and scale is None:
            raise InvalidArgument(f"[heddle.optim] the saved {name} has codes, but no {name}_scale")
        if values.dtype == fresh[name].dtype:
            fresh[name].copy_(values)
            if scale is not None:
                fresh[f"{name}_scale"].copy_(scale)
            continue
        ordered = torch.empty_strided(param.shape, fresh[name].stride(), dtype=values.dtype).copy_(values)
        wide = widened(flat(ordered), None if scale is None else scale.cpu(), signed)
        narrow_(flat(fresh[name]), fresh.get(f"{name}_scale"), wide, signed)
    if "residual" in fresh and "residual" in saved:
        fresh["residual"].copy_(saved["residual"])
    return fresh


@functools.cache
def _code(signed, device):
    return tuple(torch.tensor(each, device=device) for each in _heddle.dynamic_code(signed))


@functools.cache
def codes(device):
    """[4, 256] for a GPU's kernel: values and middles of the codes with a sign, and of those without."""
    return torch.stack([each for signed in (True, False) for each in _code(signed, device)])


@functools.cache
def _zero_code(signed):
    return _heddle.dynamic_code(signed)[0].index(0.0)


def widened(values, scale, signed):
    """Flat means in f32."""
    if scale is None:
        return values.float()
    codes = _code(signed, values.device)[0]
    return codes[values.int()] * scale.repeat_interleave(BLOCK)[: len(values)]


def narrow_(to, scale, wide, signed, chance=None):
    """Stores flat f32 means: `to` may be bf16, rounded by `chance` (16 random bits of each element) or to
    nearest without it, or codes with their scales."""
    if to.dtype == torch.float32 or (to.dtype == torch.bfloat16 and chance is None):
        to.copy_(wide)
    elif to.dtype == torch.bfloat16:
        upper = ((wide.view(torch.int32).long() & MASK) + chance) >> 16
        to.copy_(_bf16_of(torch.where(wide.isnan(), 0x7FC0, upper)))
    else:
        padded = torch.nn.functional.pad(wide, (0, -len(wide) % BLOCK)).view(-1, BLOCK)
        largest = padded.abs().amax(1)
        scale.copy_(largest)
        shares = padded / torch.where(largest == 0, 1.0, largest)[:, None]
        codes = torch.bucketize(shares, _code(signed, wide.device)[1][:-1])
        to.copy_(codes.flatten()[: len(wide)])


def _bf16_of(upper):
    """bf16 whose 16 bits are whole numbers."""
    return upper.to(torch.int32).to(torch.int16).view(torch.bfloat16)


def joined(param, residual):
    """A flat bf16 parameter in f32: its bits above those of its residual."""
    upper = param.view(torch.int16).int() << 16
    return (upper + residual.int()).view(torch.float32)


def part_(param, residual, wide):
    """Stores a flat f32 parameter as the nearest bf16, and the rest."""
    bits = torch.where(wide.isnan(), 0x7FC00000, wide.view(torch.int32))
    upper = ((bits.long() & MASK) + 0x8000) >> 16
    residual.copy_((bits.long() & MASK) - (upper << 16))
    param.copy_(_bf16_of(upper))


def chances(seed, first, count, device):
    """32 random bits of each element, the same on every device (the finalizer of MurmurHash3)."""
    h = (torch.arange(first, first + count, device=device) * 0x9E3779B1 + seed) & MASK
    h = ((h ^ (h >> 16)) * 0x85EBCA6B) & MASK
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & MASK
    return h ^ (h >> 16)


def seed_of(number, step):
    """The seed of a parameter's step."""
    return (number * 0x9E3779B97F4A7C15 + step * 0xBF58476D1CE4E5B9 + 1) >> 16 & MASK
