"""Formats of weights with few bits, as compressed-tensors stores them: what a scale may be, where a value is
rounded to, and how both lie in a file.

A value is `point * scale`, in float32, rounded to the weight's dtype. `group` adjacent columns of a row share
a scale; 0: the whole row.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch

from heddle.errors import InvalidArgument, Unsupported, did_you_mean

DTYPES = (torch.bfloat16, torch.float16, torch.float32)
E4M3_MAX, E2M1_MAX = 448.0, 6.0
E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0)
SEARCHED = tuple(1 - 0.05 * step for step in range(9))  # a smaller scale cuts off the largest values


class Whole(NamedTuple):
    """All scales of a matrix have this in common."""

    dtype: torch.dtype  # the weight's, and that of integers' scales
    divisor: float = 1.0  # NVFP4's scales are multiplied by it


class Codes(NamedTuple):
    """A matrix in a format: a file's tensors by the ends of their names, and the values that they have."""

    parts: dict
    values: torch.Tensor


@dataclass(frozen=True)
class Format:
    """One format; `replace(format, group=64)` has other groups. Subclasses say what differs."""

    name: str
    stored: str  # compressed-tensors' name of the file's format
    bits: int
    group: int
    top: float  # the largest point
    factors: tuple = (
        1.0,
    )  # times the scale that lets no value saturate; the best by squared error is chosen

    def __str__(self):
        return f"{self.name}/{self.group}" if self.group and self.name.startswith("int") else self.name

    def nearest(self, x):
        """The nearest point of each number, ties to the even code, beyond the largest one that."""
        raise NotImplementedError

    @property
    def bottom(self):
        """The least point."""
        return -self.top

    def step_of(self, size):
        """The distance from the point at or below each size, 0 or more, to the next one."""
        raise NotImplementedError

    def storable(self, scales, whole):
        """The scales that a file can have, next to these; float32."""
        return scales.to(whole.dtype).float()

    def whole_of(self, matrices):
        """The Whole of matrices that are multiplied as one."""
        return Whole(matrices[0].dtype)

    def scheme(self):
        """The description of the weights in config.json."""
        grouped = {"strategy": "group", "group_size": self.group} if self.group else {"strategy": "channel"}
        kind = "int" if self.name.startswith("int") else "float"
        return {"num_bits": self.bits, "type": kind, "symmetric": True, "dynamic": False, **grouped}

    def pack(self, points, scales, whole):
        """Tensors by the ends of their names; points [rows, columns], scales [rows, groups]."""
        raise NotImplementedError

    def unpack(self, parts, columns, whole):
        """(points [rows, columns], scales [rows, groups]) in float32: what pack() was given."""
        raise NotImplementedError

    # The rest is the same for all.

    def check(self, name, shape):
        """Refuses a matrix of [rows, columns] that does not fit."""
        if len(shape) != 2 or 0 in shape:
            raise Unsupported(
                f"[{name}] has the shape {list(shape)}; must be [rows, columns] to be stored in {self}"
            )
        if self.group and shape[1] % self.group:
            fit = [size for size in (16, 32, 64, 128, 256) if shape[1] % size == 0]
            free = self.name.startswith("int")
            other = f"--group {fit[-1]}, or " if free and fit else ""
            rows = (
                "--group 0 for one scale a row, or " if free else "fp8 or int8, whose scales are of rows, or "
            )
            raise InvalidArgument(
                f"[{name}] has {shape[1]} columns, which groups of {self.group} do not divide;"
                f" take {other}{rows}--skip {name}"
            )

    def bytes(self, shape, dtype):
        """Bytes of a matrix's tensors in a file."""
        empty = torch.empty(shape, device="meta")
        groups = (shape[0], shape[1] // (self.group or shape[1]))
        packed = self.pack(empty, torch.empty(groups, device="meta"), Whole(dtype))
        return sum(part.numel() * part.element_size() for part in packed.values())

    def by_chance(self, x, chance):
        """One of the two points around each number, the farther the rarer, so that their mean is the number;
        beyond the largest point that. `chance`: numbers from 0 to 1, without 1."""
        x = x.clamp(self.bottom, self.top)
        step = self.step_of(x.abs())
        below = (x.abs() / step).floor()
        return ((below + (x.abs() / step - below > chance)) * step).copysign(x)

    def round(self, x, scales, whole, chance=None):
        """(points, values) of numbers: next to points of a scale, or by_chance; scales broadcast."""
        scaled = torch.where(scales == 0, 0.0, x / scales)
        points = self.nearest(scaled) if chance is None else self.by_chance(scaled, chance)
        return points, (points * scales).to(whole.dtype).float()

    def choose_scales(self, block, whole, importance=None):
        """Scales [rows] of a block [rows, columns]; `importance` [columns] weighs squared errors."""
        largest = block.abs().amax(-1) / self.top
        unit = torch.where(largest == 0, 1.0, largest)[:, None]  # no square overflows
        best, least = None, None
        for factor in self.factors:
            scales = self.storable(largest * factor, whole)
            if len(self.factors) == 1:
                return scales
            error = ((self.round(block, scales[:, None], whole)[1] - block) / unit).square()
            error = (error if importance is None else error * importance).sum(-1)
            best = scales if best is None else torch.where(error < least, scales, best)
            least = error if least is None else torch.minimum(error, least)
        return best

    def fit(self, weight, whole, importance=None, chance=None):
        """(points, scales [rows, groups], values) of a matrix: the nearest points, or by_chance."""
        rows = weight.shape[0]
        blocks = weight.float().reshape(-1, self.group or weight.shape[1])
        if importance is not None:
            importance = importance.reshape(-1, blocks.shape[1]).repeat(rows, 1)
        scales = self.choose_scales(blocks, whole, importance)
        chance = None if chance is None else chance.reshape(blocks.shape)
        points, values = self.round(blocks, scales[:, None], whole, chance)
        values = values.reshape(weight.shape).to(weight.dtype)
        return points.reshape(weight.shape), scales.reshape(rows, -1), values

    def encode(self, weight, whole=None, importance=None):
        """The Codes of a finite matrix, each value at the nearest point."""
        whole = whole or self.whole_of([weight])
        points, scales, values = self.fit(weight, whole, importance)
        return Codes(self.pack(points, scales, whole), values)


class Integers(Format):
    """Integers of 4 or 8 bits, plus half of their range, several in a word of 32 bits."""

    @property
    def bottom(self):
        return -(2.0 ** (self.bits - 1))

    def nearest(self, x):
        return x.round().clamp(self.bottom, self.top)

    def step_of(self, size):
        return torch.ones_like(size)

    def pack(self, points, scales, whole):
        codes, per = points.to(torch.int64) + 2 ** (self.bits - 1), 32 // self.bits
        codes = torch.nn.functional.pad(codes, (0, -codes.shape[1] % per))
        codes = codes.reshape(len(codes), -1, per)
        words = (codes << (self.bits * torch.arange(per, device=codes.device))).sum(-1)
        return {
            "weight_packed": torch.where(words >= 2**31, words - 2**32, words).to(torch.int32),
            "weight_scale": scales.to(whole.dtype),
            "weight_shape": torch.tensor(points.shape),
        }

    def unpack(self, parts, columns, whole):
        words, per = parts["weight_packed"], 32 // self.bits
        codes = words[:, :, None] >> (self.bits * torch.arange(per, device=words.device))
        codes = (codes & (2**self.bits - 1)).reshape(len(words), -1)[:, :columns]
        return (codes - 2 ** (self.bits - 1)).float(), parts["weight_scale"].float()


class Fp8(Format):
    """Floats of 8 bits, e4m3, with a scale for each row."""

    def nearest(self, x):
        return x.clamp(-E4M3_MAX, E4M3_MAX).to(torch.float8_e4m3fn).float()

    def step_of(self, size):
        exponent = (torch.frexp(size)[1] - 1).clamp(min=-6)  # subnormal numbers have the step of the first
        return torch.ldexp(torch.ones_like(size), exponent - 3)

    def pack(self, points, scales, whole):
        return {"weight": points.to(torch.float8_e4m3fn), "weight_scale": scales.to(whole.dtype)}

    def unpack(self, parts, columns, whole):
        return parts["weight"].float(), parts["weight_scale"].float()


class FourBitFloats(Format):
    """0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives, two in a byte."""

    def nearest(self, x):
        size = x.abs().clamp(max=E2M1_MAX)
        step = self.step_of(size)
        return ((size / step).round() * step).copysign(x)

    def step_of(self, size):
        return torch.where(size < 2, 0.5, torch.where(size < 4, 1.0, 2.0))

    @staticmethod
    def pairs(points):
        size = points.abs()
        codes = torch.where(size < 2, size * 2, torch.where(size < 4, size + 2, size / 2 + 4)).to(torch.uint8)
        codes = codes | (torch.signbit(points).to(torch.uint8) << 3)
        return codes[:, ::2] | (codes[:, 1::2] << 4)

    def unpack(self, parts, columns, whole):
        packed = parts["weight_packed"]
        codes = torch.stack([packed & 15, packed >> 4], -1).reshape(len(packed), columns)
        return torch.tensor(E2M1, device=packed.device)[codes.long()], self.scales_in(parts)


class Nvfp4(FourBitFloats):
    """Scales are e4m3, over a divisor of the whole matrix."""

    def storable(self, scales, whole):
        return (scales * whole.divisor).clamp(max=E4M3_MAX).to(torch.float8_e4m3fn).float() / whole.divisor

    def whole_of(self, matrices):
        largest = max(float(matrix.abs().amax()) for matrix in matrices)
        divisor = E4M3_MAX * E2M1_MAX / largest if largest else 1.0
        divisor = float(torch.tensor(divisor).float())
        return Whole(torch.bfloat16, divisor if math.isfinite(divisor) else torch.finfo(torch.float32).max)

    def scheme(self):
        return {**super().scheme(), "strategy": "tensor_group", "scale_dtype": "torch.float8_e4m3fn"}

    def pack(self, points, scales, whole):
        return {
            "weight_packed": self.pairs(points),
            "weight_scale": (scales * whole.divisor).to(torch.float8_e4m3fn),
            "weight_global_scale": torch.tensor([whole.divisor], dtype=torch.float32),
        }

    @staticmethod
    def scales_in(parts):
        return parts["weight_scale"].float() / parts["weight_global_scale"]


class Mxfp4(FourBitFloats):
    """Scales are powers of two, a byte each."""

    def storable(self, scales, whole):
        mantissa, exponent = torch.frexp(scales)
        exponent = torch.where(mantissa == 0.5, exponent - 1, exponent)  # the next power that is not less
        exponent = torch.where(scales == 0, -127, exponent).clamp(-127, 127)
        return torch.ldexp(torch.ones_like(scales), exponent)

    def whole_of(self, matrices):
        return Whole(torch.bfloat16)

    def scheme(self):
        return {**super().scheme(), "scale_dtype": "torch.uint8"}

    def pack(self, points, scales, whole):
        exponents = torch.frexp(scales)[1] - 1 + 127
        return {"weight_packed": self.pairs(points), "weight_scale": exponents.to(torch.uint8)}

    @staticmethod
    def scales_in(parts):
        exponents = parts["weight_scale"].int() - 127
        return torch.ldexp(torch.ones(exponents.shape, device=exponents.device), exponents)


FORMATS = {
    format.name: format
    for format in (
        Integers("int4", "pack-quantized", 4, 128, 7.0, SEARCHED),
        Integers("int8", "pack-quantized", 8, 0, 127.0),
        Fp8("fp8", "float-quantized", 8, 0, E4M3_MAX),
        Mxfp4("mxfp4", "mxfp4-pack-quantized", 4, 32, E2M1_MAX, (1.0, 0.5)),
        Nvfp4("nvfp4", "nvfp4-pack-quantized", 4, 16, E2M1_MAX, SEARCHED),
    )
}


def format_named(name, group=None):
    """The format of a name, "int4" or "int4/64", with other groups of columns if asked for."""
    if isinstance(name, Format):
        return name
    kind, slash, size = str(name).partition("/")
    if kind not in FORMATS or (slash and not size.isdigit()):
        meant = did_you_mean(kind, FORMATS)
        raise InvalidArgument(f"[quantize] no format {name}; there are {', '.join(FORMATS)}{meant}")
    format = FORMATS[kind]
    group = int(size) if slash else group
    if group is None or group == format.group:
        return format
    if not isinstance(format, Integers):
        raise InvalidArgument(
            f"[quantize] {kind} has groups of {format.group or 'whole rows'}; --group is for int4 and int8"
        )
    if group < 0 or group % 8:
        raise InvalidArgument(f"[quantize] the group is {group}; must be 0, a whole row, or a multiple of 8")
    return replace(format, group=group)


def require_finite(name, weight):
    """Refuses a matrix with NaN or infinite elements, and names the first."""
    wrong = (~torch.isfinite(weight)).nonzero()
    if len(wrong):
        at = wrong[0].tolist()
        raise InvalidArgument(
            f"[{name}] has {float(weight[tuple(at)])} at {at}, and {len(wrong)} such elements in all;"
            " must be finite: train or download it again"
        )
    if weight.dtype not in DTYPES:
        raise Unsupported(f"[{name}] is {weight.dtype}; must be bfloat16, float16 or float32")
