"""Training with weights as they will be in codes: QAT, whose gradients pass the rounding unchanged."""

import torch
from torch import nn
from torch.autograd.function import once_differentiable

from heddle.errors import InvalidArgument, Unsupported, named_class
from heddle.quant.formats import format_named
from heddle.quant.linear import QuantLinear, quantize_, whole_of_unit
from heddle.quant.select import SKIP, linear_names, units
from heddle.quant.sparse_linear import SparseLinear

ROUNDINGS = ("nearest", "stochastic")


class _StraightThrough(torch.autograd.Function):
    """The values, with the gradient of the weight that they were rounded from."""

    @staticmethod
    def forward(ctx, weight, values):
        return values.view_as(values)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad, None


class QatLinear(nn.Linear):
    """nn.Linear that multiplies its weight's values in a format, rounded anew at each call with gradients.

    The weight stays the parameter that it was. `fellows`: the layers whose codes have a divisor in common
    with its own, itself among them.
    """

    # heddle.from_transformers refuses a model with such a layer.
    not_its_weights = (
        "is prepared by QAT, and multiplies other values than its weight's; give QAT.convert(model), or"
        " QAT.revert(model)"
    )

    def rounded(self):
        """The values [out_features, in_features] of the weight, in its dtype: at the nearest points, or in
        training by chance if `rounding` is "stochastic"."""
        weight = self.weight.detach()
        if self.training and self.rounding == "stochastic":
            chance = torch.rand(weight.shape, device=weight.device)
            return self.format.fit(weight, self._whole(), chance=chance)[2]
        if torch.is_grad_enabled() or torch.compiler.is_compiling():
            return self.format.fit(weight, self._whole())[2]
        of = [each.weight.detach() for each in self.fellows]
        key = [(each.data_ptr(), 0 if each.is_inference() else each._version) for each in of]
        if self.kept is None or self.kept[0] != key:
            self.kept = key, self.format.fit(weight, self._whole())[2]
        return self.kept[1]

    def _whole(self):
        return self.format.whole_of([each.weight.detach() for each in self.fellows])

    def forward(self, x):
        weight = self.trained_weight() if isinstance(self, SparseLinear) else self.weight
        with torch.autocast(self.weight.device.type, enabled=False):
            values = self.rounded()
        return nn.functional.linear(x, _StraightThrough.apply(weight, values), self.bias)

    def __getstate__(self):
        return {**self.__dict__, "kept": None}

    def extra_repr(self):
        return f"{super().extra_repr()}, {self.format}, rounding={self.rounding}"


class QatSparseLinear(QatLinear, SparseLinear):
    """A QatLinear whose zeros stay zero."""


_PREPARED = {nn.Linear: QatLinear, SparseLinear: QatSparseLinear}
_PLAIN = {made: plain for plain, made in _PREPARED.items()}


@named_class
class QAT:
    """Trains a model so that it loses little in codes: `prepare`, train, `convert`.

    >>> qat = heddle.quant.QAT("int4", group=32)
    >>> qat.prepare(model)  # nn.Linear layers multiply what their weights are in the format
    >>> qat.convert(model)  # after training: the codes that quantize_ makes of the trained weights

    `config`, `group` and `skip` are those of quantize_. rounding: "nearest", or "stochastic": in training
    each weight goes to one of the two points around it, so that it is right on average. Only weights are
    rounded.
    Raises InvalidArgument for what quantize_ refuses.
    """

    def __init__(self, config="int4", *, group=None, skip=SKIP, rounding="nearest"):
        if rounding not in ROUNDINGS:
            raise InvalidArgument(f"[QAT] rounding is {rounding!r}; must be one of {', '.join(ROUNDINGS)}")
        if not isinstance(config, dict):
            config = format_named(config, group)
        self.config, self.skip, self.rounding = config, skip, rounding

    def prepare(self, model):
        """Has the nn.Linear layers of a model, pruned ones too, multiply their weights' values in the format,
        in place; returns the model. state_dict() stays as it was. Where it raises, the model is as it was."""
        if not isinstance(model, nn.Module):
            raise InvalidArgument(f"[QAT] the model is {type(model).__name__}; must be a torch.nn.Module")
        if isinstance(model, tuple(_PREPARED)):
            raise InvalidArgument("[QAT] the model is a layer; must have layers inside: nn.Sequential(layer)")
        names = linear_names(model, self.skip, tuple(_PREPARED), "QAT")
        formats = dict.fromkeys(names, self.config)
        if isinstance(self.config, dict):
            if unknown := sorted(set(self.config) - set(names)):
                raise InvalidArgument(f"[QAT] {unknown[0]} is no nn.Linear of the model that may be prepared")
            formats = {n: format_named(self.config[n]) for n in names if self.config.get(n) is not None}
        groups = []
        for unit in units(formats):
            for format in dict.fromkeys(formats[name] for name in unit):
                layers = {n: model.get_submodule(n) for n in unit if formats[n] == format}
                whole_of_unit(format, {n: layer.weight.detach() for n, layer in layers.items()})
                groups.append((format, list(layers.values())))
        for format, layers in groups:
            for layer in layers:
                layer.__class__ = _PREPARED[type(layer)]
                layer.format, layer.rounding, layer.fellows, layer.kept = format, self.rounding, layers, None
        return model

    def convert(self, model):
        """Puts the weights of prepared layers into codes, as quantize_ does, in place; returns the model."""
        formats = {n: m.format for n, m in model.named_modules() if isinstance(m, QatLinear)}
        if not formats:
            raise Unsupported("[QAT] the model has no layer that was prepared; call prepare(model) before")
        for unit in units(formats):
            for format in dict.fromkeys(formats[name] for name in unit):
                layers = {n: model.get_submodule(n).weight.detach() for n in unit if formats[n] == format}
                whole_of_unit(format, layers)  # what is not finite is refused before anything changes
        return quantize_(self.revert(model), formats, skip=())

    def revert(self, model):
        """Makes prepared layers what they were, with their weights; returns the model."""
        for module in model.modules():
            if isinstance(module, QatLinear):
                for name in ("format", "rounding", "fellows", "kept"):
                    del module.__dict__[name]
                module.__class__ = _PLAIN[type(module)]
        return model


def few_bits_paths(model):
    """Yields (name, class, path, reason, from which sizes it pays, calls) of layers, for heddle.explain."""
    for name, module in model.named_modules():
        if isinstance(module, QatLinear):
            path = f"torch, weights rounded to {module.format}"
            yield name, "QatLinear", path, "QAT: convert(model) makes codes", "", None
        elif isinstance(module, QuantLinear):
            reason = "codes are expanded at each call; the engine multiplies them"
            yield name, "QuantLinear", f"torch, {module.format}", reason, "", None
