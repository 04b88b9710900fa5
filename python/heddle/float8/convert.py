"""A model's layers in FP8, and those that stay as they are."""

import collections
import warnings

from torch import nn

from heddle.errors import InvalidArgument, Unsupported, named
from heddle.float8.casts import UNIT
from heddle.float8.config import Float8Config
from heddle.float8.gain import least_tokens, nanoseconds
from heddle.float8.linear import Float8Linear, path_of

_REASON = "_heddle_float8_reason"  # on layers that a conversion left out
_MANY_TOKENS = 1 << 17


def _why_left_out(linear, name, config, module_filter_fn):
    if module_filter_fn is not None and not module_filter_fn(linear, name):
        return "module_filter_fn leaves it out"
    if hasattr(type(linear), "_heddle_kind"):
        return "heddle.patch has taken it for the loss"
    if type(linear) is not nn.Linear:
        return f"its class is {type(linear).__qualname__}; must be torch.nn.Linear itself"
    outputs, inputs = linear.weight.shape
    if outputs % UNIT or inputs % UNIT:
        return f"its weight is {outputs} x {inputs}; both must be multiples of {UNIT}"
    if not config.always:
        wide, narrow = nanoseconds(config, _MANY_TOKENS, outputs, inputs)
        if narrow >= wide:
            return f"its weight is {outputs} x {inputs}, too small to gain"
    return ""


@named
def convert_to_float8_training(model, *, recipe=None, config=None, module_filter_fn=None):
    """Has the nn.Linear layers of a model multiply in FP8 when it trains, in place; returns the model.

    recipe: "block" (the default), "row" or "tensor", or `config`, a Float8Config, which says more.
    module_filter_fn(module, name): False leaves a layer as it is, for example
    `lambda module, name: name != "lm_head"`. Layers whose sizes are no multiples of 16, and those too small
    to gain, stay as they are (`always=True` in the config keeps the latter); `heddle.explain(model)` says so.
    state_dict() has the names and dtypes that it had. Layers of PEFT are looked into: their base layers
    convert.

    Raises InvalidArgument for another recipe, and Unsupported where there is no nn.Linear. It warns where all
    layers stay as they are.
    """
    if not isinstance(model, nn.Module):
        raise InvalidArgument(
            f"[convert_to_float8_training] the model is {type(model).__name__}; must be a torch.nn.Module"
        )
    if recipe is not None and config is not None:
        raise InvalidArgument(
            "[convert_to_float8_training] give a recipe, or a config that has one: not both"
        )
    if config is None:
        config = Float8Config(**({} if recipe is None else {"recipe": recipe}))
    linears = {name: m for name, m in model.named_modules() if isinstance(m, nn.Linear)}
    linears = {name: m for name, m in linears.items() if not isinstance(m, Float8Linear)}
    reasons = {name: _why_left_out(m, name, config, module_filter_fn) for name, m in linears.items()}
    if not linears and not any(isinstance(module, Float8Linear) for module in model.modules()):
        raise Unsupported("[convert_to_float8_training] the model has no nn.Linear; must have one")
    for name, linear in linears.items():
        linear.__dict__.pop(_REASON, None)
        if reasons[name]:
            linear.__dict__[_REASON] = reasons[name]
        else:
            Float8Linear.from_linear(linear, config).float8_name = name
    if linears and all(reasons.values()):
        name, reason = next(iter(reasons.items()))
        warnings.warn(f"no layer trains in FP8; {name or 'the layer'}: {reason}", stacklevel=3)
    return model


def left_out(model):
    """{name: reason} of the layers that a conversion left as they are."""
    return {name: m.__dict__[_REASON] for name, m in model.named_modules() if _REASON in m.__dict__}


def revert(model):
    """Makes the layers nn.Linear again, as before the conversion; returns the model."""
    for module in model.modules():
        module.__dict__.pop(_REASON, None)
        if type(module) is Float8Linear:
            for name in ("float8", "float8_name", "float8_calls"):
                del module.__dict__[name]
            module.__class__ = nn.Linear
    return model


def float8_paths(model):
    """Yields (name, class, path, reason, from which sizes it pays, calls) of layers, for heddle.explain."""
    for name, module in model.named_modules():
        if _REASON in module.__dict__:
            yield name, type(module).__qualname__, "torch", module.__dict__[_REASON], "", None
        if not isinstance(module, Float8Linear):
            continue
        pays = ""
        if module.weight.device.type == "cuda" and not module.float8.always:
            pays = f"from about {least_tokens(module.float8, *module.weight.shape)} tokens"
        for reason, calls in (module.float8_calls or collections.Counter({"": 0})).items():
            yield name, type(module).__qualname__, path_of(module, reason), reason, pays, calls
