"""Models of transformers or torch with heddle's ops in them: `patch`, `unpatch`, `is_patched`, `patched`.

>>> import heddle
>>> print(heddle.patch(model))  # a table: what runs in heddle, what does not, and why
"""

import sys
from collections import Counter

import torch

import heddle.torch  # noqa: F401  # ops with gradients
from heddle.errors import InvalidArgument, Unsupported, named
from heddle.patching import classes, find, fits, kinds, loss, pays
from heddle.patching.generate import GENERATE
from heddle.patching.report import Report, Row

__all__ = ["Report", "Row", "is_patched", "patch", "patched", "unpatch"]

_RECORD = "_heddle_record"  # in the root: the rows of parts that nothing was changed for

_ONE_KERNEL = "torch has it in one kernel, and heddle's is not faster"


def root_of(model):
    """The outermost model of transformers in a module, which may be wrapped by an adapter or a trainer; the
    module itself where there is none."""
    if not isinstance(model, torch.nn.Module):
        raise InvalidArgument(
            f"[patch] model is of type {type(model).__name__}; must be a torch.nn.Module, such as a model of"
            " transformers"
        )
    # Whoever has such a model has imported its class.
    known = getattr(sys.modules.get("transformers.modeling_utils"), "PreTrainedModel", ())
    return next((module for module in model.modules() if isinstance(module, known)), model)


def parts_of(root):
    """(part, kind, module, reason): the modules that could be changed; the reason says why one is not."""
    found = {}  # by class, of which some may have a weight and an eps where others have none
    for module in root.modules():
        cls = find.own_class(module)
        key = cls, find.looks_like_norm(module)
        if key not in found:
            found[key] = kinds.kind_of(module)
        kind, reason = found[key]
        if kind is kinds.GATED_SILU and kinds.kind_of(getattr(module, find.gated(module).act))[0]:
            continue  # its activation is a part of its own
        if kind:
            yield kind.part, kind, module, reason or _refusal(kind, module)
        elif cls.__name__.endswith("Norm"):
            yield "norm", None, module, f"{classes.class_name(cls)} is no norm that heddle has"
        elif cls.__name__.endswith(("MLP", "Experts")):
            acts = [each for each in module.children() if find.looks_like_function(each)]
            if acts and all(kinds.kind_of(act)[0] is None for act in acts):
                yield "mlp", None, module, _why_no_mlp(cls, acts)
        elif cls.__name__.endswith("Attention"):
            yield "attention", None, module, f"{classes.class_name(cls)} does not call the config's attention"


def _why_no_mlp(cls, acts):
    if cls.__name__.endswith("Experts"):
        return f"{classes.class_name(cls)} multiplies by all experts' weights as one tensor"
    return f"{type(acts[0]).__name__}: {_ONE_KERNEL}"


def _refusal(kind, module):
    """Returns why this module of a known class is left alone, or ""."""
    if kind is kinds.GATED_SILU:
        name = find.gated(module).act
        act = getattr(module, name)
        if not kinds.is_plain_silu(act):
            return f"its {name} is {type(act).__name__}, or is watched; must be a SiLU"
    if kind is kinds.ATTENTION and module.config._attn_implementation not in ("heddle", "sdpa"):
        return f"its attention is {module.config._attn_implementation!r}; heddle takes calls of 'sdpa'"
    return ""


def _swap(root, wanted):
    refused, parts = Counter(), list(parts_of(root))
    if not any(kind for _, kind, _, _ in parts):
        raise Unsupported(
            f"[patch] {type(root).__name__} has no norm, gated MLP or attention that heddle knows"
        )
    for part, kind, module, reason in parts:
        if part not in wanted:
            continue
        if not reason and (owner := classes.foreign(module)):
            reason = f"{owner} has replaced its forward"
        if reason:
            refused[part, reason] += 1
        else:
            classes.put_on(module, kind)
            kind.after_put_on(module, root)
    return [Row(part, "torch", reason, count, None) for (part, reason), count in refused.items()]


def _cross_entropy(root, wanted):
    """Returns why the loss stays torch's, as a row, or nothing."""
    reason = loss.refusal(root)
    if reason and wanted is True:
        raise Unsupported(f'[patch] cross_entropy is True, and {reason}; "auto" leaves it to torch')
    return [Row("cross_entropy", loss.OTHERWISE, reason, 1, None)] if reason else []


def _check(name, value, choices):
    if not any(value is choice or (isinstance(choice, str) and value == choice) for choice in choices):
        raise InvalidArgument(f"[patch] {name} is {value!r}; must be one of {', '.join(map(repr, choices))}")


def _let_generate(root):
    """Puts the engine under the model's generate; the rows say where it cannot."""
    can_generate = getattr(root, "can_generate", lambda: False)
    reason = "" if can_generate() else f"{type(root).__name__} does not generate"
    if owner := classes.foreign(root, "generate"):
        reason = f"{owner} has replaced its generate"
    if reason:
        return [Row("generate", "transformers", reason, 1, None)]
    classes.put_on(root, GENERATE)
    return []


@named
def patch(
    model: torch.nn.Module,
    norm: bool = True,
    mlp: bool = True,
    attention: bool = True,
    cross_entropy: bool | str = "auto",
    generate: str | None = None,
) -> Report:
    """Lets parts of a model run in heddle, and returns the table of what does. The model is one of
    transformers, or of torch, whose own norms and activations are taken; that needs no transformers.

    The classes of some modules change, for this model alone; parameters, hooks and the projections stay what
    they are. A call that heddle does not take runs as before, and the table counts it with its reason.
    Patching again starts from the model's own state.

    With generate="megakernel", model.generate decodes in heddle's engine, on a copy of the weights that is
    made when a call finds them changed.
    """
    for name, value in (("norm", norm), ("mlp", mlp), ("attention", attention)):
        _check(name, value, (True, False))
    _check("cross_entropy", cross_entropy, ("auto", True, False))
    _check("generate", generate, (None, "megakernel"))
    root = root_of(model)
    rows = []
    unpatch(model)
    fits.forget()
    if cross_entropy:
        rows += _cross_entropy(root, cross_entropy)
        if not rows:
            loss.put_on(root)
    wanted = (("norm", norm), ("mlp", mlp), ("attention", attention))
    rows += _swap(root, [part for part, on in wanted if on])
    if generate:
        rows += _let_generate(root)
    root.__dict__[_RECORD] = tuple(rows)
    return patched(model)


@named
def unpatch(model: torch.nn.Module) -> None:
    """Gives every module of a model its own class again. A model that is not patched stays as it is."""
    root = root_of(model)
    for module in model.modules():
        if classes.original_of(module):
            kind = type(module)._heddle_kind
            classes.take_off(module)
            kind.after_take_off(module, root)
        loss.take_off(module)
        module.__dict__.pop(_RECORD, None)


@named
def is_patched(model: torch.nn.Module) -> bool:
    """True if `patch` has been applied to a model."""
    root_of(model)
    return any(_RECORD in module.__dict__ or classes.original_of(module) for module in model.modules())


def _counted(model):
    """Rows of the modules that were changed. One whose forward was replaced since has a row of its own."""
    modules, calls, sizes = Counter(), Counter(), {}
    device = next((weight.device for weight in model.parameters()), torch.device("cpu"))
    for module in model.modules():
        if not classes.original_of(module):
            continue
        kind = type(module)._heddle_kind
        if kind is loss.HEAD:  # the loss counts its calls
            continue
        if owner := classes.foreign(module, kind.method) or classes.replaced(module):
            modules[kind.part, kind.otherwise, f"{owner} has replaced its {kind.method} since"] += 1
            continue
        modules[kind.part, kind.path, ""] += 1
        if kind.part != "generate":
            sizes.setdefault((kind.part, kind.path, ""), pays.of_kind(kind, module, device))
        for reason, count in module.__dict__[classes.CALLS].items():
            key = kind.part, kind.otherwise if reason else kind.path, reason
            calls[key] += count
            modules[key] += bool(reason)
    for module in model.modules():
        if isinstance(function := module.__dict__.get(loss.NAME), loss.Loss):
            best = "cross_entropy", loss.PATH if function.with_logits else loss.LINEAR, ""
            modules[best] += 1
            sizes[best] = pays.of_loss(module.config.vocab_size, device)
            if function.with_logits:
                sizes[best] += f"; with the logits in memory: {function.with_logits}"
            for (path, reason), count in function.calls.items():
                key = "cross_entropy", path, reason
                calls[key] += count
                modules[key] += key != best
    return [Row(*key, count, calls[key], sizes.get(key, "")) for key, count in modules.items()]


@named
def patched(model: torch.nn.Module) -> Report:
    """The table of a patched model: part, path, reason, and calls since it was patched."""
    root_of(model)
    rows = _counted(model)
    for module in model.modules():
        rows += module.__dict__.get(_RECORD, ())
    order = ("norm", "mlp", "attention", "cross_entropy", "generate")
    return Report(sorted(rows, key=lambda row: (order.index(row.part), not row.is_heddle)))
