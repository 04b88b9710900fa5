"""nn.Linear whose weight is in codes, and `quantize_`, which puts it into a model."""

import torch
from torch import nn
from torch.autograd.function import once_differentiable

from heddle.errors import InvalidArgument, Unsupported, named
from heddle.quant.formats import format_named, require_finite
from heddle.quant.select import SKIP, linear_names, quantization_config, units
from heddle.quant.sparse_linear import SparseLinear


class _Expanded(torch.autograd.Function):
    """x W^T + bias of a layer in codes. The backward expands them again, so that no matrix is kept."""

    @staticmethod
    def forward(ctx, x, bias, layer):
        ctx.layer, ctx.dtype, ctx.bias_dtype = layer, x.dtype, None if bias is None else bias.dtype
        return nn.functional.linear(x, layer.dequantize().to(x.dtype), bias)

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        dx = dbias = None
        if ctx.needs_input_grad[0]:
            dx = (dy @ ctx.layer.dequantize().to(ctx.dtype).to(dy.dtype)).to(ctx.dtype)
        if ctx.needs_input_grad[1]:
            dbias = dy.flatten(0, -2).sum(0).to(ctx.bias_dtype)
        return dx, dbias, None


class _InCodes(torch.Tensor):
    """Shape, dtype and device of a weight that is in codes. Anything else is refused."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, shape, dtype, device):
        return torch.Tensor._make_wrapper_subclass(cls, shape, dtype=dtype, device=device)

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise Unsupported(
            f"[QuantLinear] {function} wants its weight, which is in codes; layer.dequantize() is the matrix,"
            " and heddle.quant.dequantize_(model) makes layers of floats, into which adapters can be merged"
        )

    def __repr__(self, **_):
        return f"weight in codes, {list(self.shape)}, {self.dtype}"


class QuantLinear(nn.Linear):
    """A layer that keeps codes and scales as buffers, under the names of compressed-tensors (`weight_packed`,
    `weight_scale`, ...), and expands them at each call. Gradients reach its input and bias.

    Adapters of PEFT take it for the nn.Linear that it was. `weight` has its shape, dtype and device alone.
    """

    def __init__(self, codes, format, whole, bias):
        nn.Module.__init__(self)
        self.out_features, self.in_features = codes.values.shape
        self.dtype = codes.values.dtype
        self._buffers.update(codes.parts)
        self.format, self.whole, self.bias = format, whole, bias

    def __getattr__(self, name):
        if name == "weight":
            device = next(iter(self._buffers.values())).device
            return _InCodes((self.out_features, self.in_features), self.dtype, device)
        return super().__getattr__(name)

    def dequantize(self):
        """The matrix that the codes stand for, in the dtype that it had."""
        points, scales = self.format.unpack(dict(self.named_buffers()), self.in_features, self.whole)
        groups = points.reshape(self.out_features, scales.shape[1], -1)
        values = (groups * scales[:, :, None]).to(self.whole.dtype)
        return values.reshape(points.shape).to(self.dtype)

    def forward(self, x):
        kind = x.device.type
        if torch.is_autocast_enabled(kind):
            x = x.to(torch.get_autocast_dtype(kind))
        if torch.is_grad_enabled() and not torch.compiler.is_compiling():
            return _Expanded.apply(x, self.bias, self)
        return nn.functional.linear(x, self.dequantize().to(x.dtype), self.bias)

    def extra_repr(self):
        return f"{self.in_features}, {self.out_features}, {self.format}, bias={self.bias is not None}"


def whole_of_unit(format, layers):
    """The Whole of matrices {name: tensor} that are multiplied as one. Refuses those that do not fit."""
    for name, weight in layers.items():
        require_finite(name, weight)
        format.check(name, weight.shape)
    return format.whole_of(list(layers.values()))


def encode_unit(format, layers):
    """{name: Codes} of matrices {name: tensor} that are multiplied as one, and what they have in common."""
    whole = whole_of_unit(format, layers)
    return {name: format.encode(each, whole) for name, each in layers.items()}, whole


@named
def quantize_(model, config="int4", *, group=None, skip=SKIP):
    """Puts the weights of a model's nn.Linear layers into codes, in place, each value at the nearest point of
    its format; returns the model.

    `config`: int4, int8, fp8, mxfp4 or nvfp4, "int4/64" for groups of 64 columns, or {layer's name: format},
    as `allocate_bits` returns in `.formats`. `group`: columns of int4 or int8 that share a scale; 0: a row.
    `skip`: names of layers, ends of names, or patterns with * that stay as they are.

    In `state_dict()` a layer `a.weight` becomes what compressed-tensors has: int4 and int8 `a.weight_packed`
    (I32, eight or four codes in a word), `a.weight_scale` and `a.weight_shape`; fp8 `a.weight` (e4m3) and
    `a.weight_scale`; mxfp4 and nvfp4 `a.weight_packed` (U8, two codes in a byte), `a.weight_scale`, and of
    nvfp4 `a.weight_global_scale`. `model.config` says so, so that `save_pretrained` writes such a folder.

    Raises InvalidArgument where groups do not divide a row or a weight is not finite, and Unsupported where
    there is no nn.Linear; then the model is as it was.
    """
    if not isinstance(model, nn.Module):
        raise InvalidArgument(f"[quantize_] the model is {type(model).__name__}; must be a torch.nn.Module")
    names = linear_names(model, skip, (nn.Linear, SparseLinear))
    if isinstance(config, dict):
        unknown = sorted(set(config) - set(names))
        if unknown:
            raise InvalidArgument(
                f"[quantize_] {unknown[0]} is no nn.Linear of the model that may be quantised"
            )
        formats = {name: format_named(config[name]) for name in names if config.get(name) is not None}
    else:
        formats = dict.fromkeys(names, format_named(config, group))
    made = {}
    with torch.no_grad():
        for unit in units(formats):
            for format in dict.fromkeys(formats[name] for name in unit):
                layers = {n: model.get_submodule(n).weight for n in unit if formats[n] == format}
                coded, whole = encode_unit(format, layers)
                for name, codes in coded.items():
                    made[name] = QuantLinear(codes, format, whole, model.get_submodule(name).bias)
    left = [n for n, m in model.named_modules() if type(m) in (nn.Linear, SparseLinear) and n not in made]
    for name, layer in made.items():
        layer.train(model.training)
        model.set_submodule(name, layer)
    if hasattr(model, "config"):
        model.config.quantization_config = quantization_config(formats, left)
    return model


@named
def dequantize_(model):
    """Makes the QuantLinear layers of a model nn.Linear, with the values of their codes in the dtype that the
    weights had, in place; returns the model. Their weights are frozen. Adapters of PEFT, if there are any,
    stay and can be merged."""
    for name, layer in list(model.named_modules()):
        if isinstance(layer, QuantLinear):
            plain = nn.Linear(layer.in_features, layer.out_features, layer.bias is not None, device="meta")
            plain.weight = nn.Parameter(layer.dequantize(), requires_grad=False)
            plain.bias = layer.bias
            model.set_submodule(name, plain.train(layer.training))
    config = getattr(model, "config", None)
    if getattr(config, "quantization_config", None) is not None:
        del config.quantization_config
    return model


class FP4Quantizer:
    """quantize_ in 4-bit floats, as KernelPyTorch names it. format_type: "fp4" and "nvfp4" are NVFP4, "mxfp4"
    is MXFP4. block_size: None, or the format's 16 or 32."""

    def __init__(self, format_type="fp4", block_size=None):
        self.format = format_named({"fp4": "nvfp4"}.get(format_type, format_type))
        if self.format.bits != 4 or block_size not in (None, self.format.group):
            raise InvalidArgument(
                f"[FP4Quantizer] format_type is {format_type!r} and block_size {block_size}; must be fp4,"
                " nvfp4 with blocks of 16, or mxfp4 with blocks of 32"
            )

    def quantize_module(self, module):
        return quantize_(module, self.format)
