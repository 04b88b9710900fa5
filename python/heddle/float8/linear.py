"""nn.Linear whose three products run in FP8."""

import collections

import torch
from torch import nn
from torch.autograd.function import once_differentiable

from heddle.errors import Unsupported
from heddle.float8 import counts
from heddle.float8.casts import UNIT, Coded, cast
from heddle.float8.gain import why_slower
from heddle.float8.products import BY_TORCH, EMULATED, has_products, multiply

_MEMO = "_heddle_float8"  # an input's attribute: its codes, which layers share


def _weight_by(config):
    return "square" if config.recipe == "block" else config.recipe


def _cast_of_input(x, rows, config, wants_columns):
    """The codes of x, as rows [M, K]; those that another layer made of it, where it has not changed."""
    if torch.compiler.is_compiling() or x.is_inference():  # neither has versions
        return cast(rows, config.recipe, wants_columns=wants_columns)
    key = (x._version, rows.dtype, rows.shape, config.recipe)
    known, both = getattr(x, _MEMO, (None, None))
    if known != key or (wants_columns and both.columns is None):
        both = cast(rows, config.recipe, wants_columns=wants_columns)
        setattr(x, _MEMO, (key, both))
    return both


class _Products(torch.autograd.Function):
    """y = x w^T. The codes of x are given, of its rows, and of its columns for the weight's gradient."""

    @staticmethod
    def forward(ctx, x, weight, codes, scales, turned, turned_scales, config, name):
        ctx.save_for_backward(weight, turned, turned_scales)
        ctx.config, ctx.name, ctx.dtype = config, name, x.dtype
        rows = cast(weight, _weight_by(config), wants_columns=False).rows
        ctx.counts = counts.active()  # a GPU's backward runs in another thread
        counts.note(ctx.counts, (name, "weight"), weight, rows)
        return multiply(Coded(codes, scales), rows, x.dtype, fast=config.recipe != "block")

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        weight, turned, turned_scales = ctx.saved_tensors
        config, (wants_dx, wants_dw) = ctx.config, ctx.needs_input_grad[:2]
        both = cast(dy.contiguous(), config.recipe, config.gradients, wants_dw)
        counts.note(ctx.counts, (ctx.name, "gradient"), dy, both.rows)
        dx = dw = None
        if wants_dx:
            dx = multiply(both.rows, cast(weight, _weight_by(config)).columns, ctx.dtype)
        if wants_dw:
            dw = multiply(both.columns, Coded(turned, turned_scales), weight.dtype)
        return dx, dw, None, None, None, None, None, None


class Float8Linear(nn.Linear):
    """nn.Linear whose products run in FP8, forward and backward, with scales of each call's own values.

    The weight stays the parameter that it was. For the backward a layer keeps x in codes, a byte an element,
    and layers that have the same input share them. A CPU multiplies what the codes stand for, in f32: exact,
    and no faster.
    """

    @classmethod
    def from_linear(cls, linear, config):
        """Makes a layer a Float8Linear in place: hooks, names and parameters stay."""
        linear.__class__ = cls
        linear.float8, linear.float8_name, linear.float8_calls = config, "", collections.Counter()
        return linear

    def _why_not(self, x):
        """The reason why a call of x [..., K] runs in torch; "" where it runs in FP8."""
        config, tokens = self.float8, x.numel() // max(1, self.in_features)
        if tokens == 0:
            return "it has no rows"
        if x.device.type == "cuda":
            if not has_products(x.device):
                return "products of fp8 want a GPU of compute capability 9.0"
            if not config.always:
                return why_slower(config, tokens, *self.weight.shape)
        return ""

    def forward(self, x):
        device = x.device.type
        if torch.is_autocast_enabled(device):
            dtype = torch.get_autocast_dtype(device)
        else:
            dtype = x.dtype
            if dtype != self.weight.dtype:
                return super().forward(x)  # which refuses it
        if dtype not in (torch.bfloat16, torch.float32):
            raise Unsupported(
                f"[Float8Linear] {self.float8_name or 'x'} gets {dtype}, whose range does not hold gradients"
                " of FP8 training; train in torch.bfloat16, with torch.autocast or without"
            )
        reason = self._why_not(x)
        if not torch.compiler.is_compiling():
            self.float8_calls[reason] += 1
        if reason:
            return super().forward(x)
        return self._in_float8(x, dtype)

    def _in_float8(self, x, dtype):
        rows = x.reshape(-1, self.in_features).to(dtype)
        few = -rows.shape[0] % UNIT
        if few:  # rows of zeros, which change no sum
            rows = nn.functional.pad(rows, (0, 0, 0, few))
        wants_dw = torch.is_grad_enabled() and self.weight.requires_grad
        both = _cast_of_input(x, rows, self.float8, wants_dw)
        counts.note(counts.active(), (self.float8_name, "input"), rows, both.rows)
        turned = both.columns if wants_dw else Coded(None, None)
        y = _Products.apply(rows, self.weight, *both.rows, *turned, self.float8, self.float8_name)
        y = y[: y.shape[0] - few] if few else y
        if self.bias is not None:
            y = y + self.bias.to(dtype)
        return y.view(*x.shape[:-1], self.out_features)

    def extra_repr(self):
        return f"{super().extra_repr()}, recipe={self.float8.recipe}"


def path_of(module, reason):
    """The path of a call, as heddle.explain says it."""
    if reason:
        return "torch"
    words = [f"heddle.float8: {module.float8.recipe}"]
    if module.weight.device.type == "cpu":
        words.append(EMULATED)
    elif module.float8.recipe == "block":
        words.append(BY_TORCH)
    return ", ".join(words)
