"""The path of each module of a model, patched or not."""

import torch

from heddle.patching import classes, find, is_patched, loss, parts_of, pays, root_of

_UNPATCHED = "not patched: heddle.patch(model) lets it run in heddle"


def _of_patched(name, module, device):
    """A row for each path that calls of a patched module took; heddle's where there were none."""
    kind = type(module)._heddle_kind
    cls = classes.original_of(module).__qualname__
    words = "" if kind.part in ("generate", "cross_entropy") else pays.of_kind(kind, module, device)
    if owner := classes.foreign(module, kind.method) or classes.replaced(module):
        yield name, cls, kind.otherwise, f"{owner} has replaced its {kind.method} since", words, None
        return
    calls = module.__dict__[classes.CALLS] or {"": 0}
    if "" in calls:
        yield name, cls, kind.path, "", words, calls[""]
    for reason, count in calls.items():
        if reason:
            yield name, cls, kind.otherwise, reason, words, count


def _of_loss(name, module, device):
    function = module.__dict__.get(loss.NAME)
    if not isinstance(function, loss.Loss):
        return
    words = pays.of_loss(module.config.vocab_size, device)
    best = loss.PATH if function.with_logits else loss.LINEAR
    calls = dict(function.calls) or {(best, ""): 0}
    for (path, reason), count in calls.items():
        yield f"{name}.loss_function".lstrip("."), "the loss", path, reason, words, count


def module_paths(model):
    """Yields (name, class, path, reason, from which sizes it pays, calls) of modules that heddle knows."""
    root, patched = root_of(model), is_patched(model)
    device = next((weight.device for weight in model.parameters()), torch.device("cpu"))
    names = {module: name for name, module in model.named_modules()}
    unpatched = {module: (kind, reason) for _, kind, module, reason in parts_of(root)}
    for module, name in names.items():
        yield from _of_loss(name, module, device)
        if classes.original_of(module):
            if type(module)._heddle_kind is not loss.HEAD:  # the loss counts its calls
                yield from _of_patched(name, module, device)
        elif module in unpatched:
            kind, reason = unpatched[module]
            cls = find.own_class(module).__qualname__
            words = pays.of_kind(kind, module, device) if kind and not reason else ""
            otherwise = "the patch left it out" if patched else _UNPATCHED
            yield name, cls, "torch", reason or otherwise, words, None
