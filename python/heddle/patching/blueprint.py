"""Builds what transformers makes of a model's config: modules, their settings, their buffers. A comparison
with it shows changes to a model that neither weights nor config say: an activation, an eps."""

import torch
from torch.overrides import TorchFunctionMode

from heddle.patching import classes

_OWN_MODULES = ("transformers.", "torch.nn.")
_CAPTURE = "transformers.utils.output_capturing"  # its hooks do nothing while nobody asks for such outputs
# Settings that change no token of an answer: notes, what is for training, and what a call finds out.
_IDLE = (
    "gradient_checkpointing",
    "training",
    "generation_config",
    "name_or_path",
    "warnings_issued",
    "vocab_size",
)
_FOUND_OUT = ("max_seq_len_cached",)
_BY_LENGTH = ("dynamic", "longrope")  # ropes that set their frequencies and scaling in each call
_SET_BY_LENGTH = ("inv_freq", "attention_scaling")


class _WithoutMemory(TorchFunctionMode):
    """Weights, which torch.empty makes, get no memory."""

    def __torch_function__(self, function, types, arguments=(), keywords=None):
        keywords = keywords or {}
        if function is torch.empty:
            keywords = {**keywords, "device": "meta"}
        return function(*arguments, **keywords)


def _is_idle(module, name):
    if name.startswith("_") or name in _IDLE or name.endswith(_FOUND_OUT) or "dropout" in name:
        return True
    rope = getattr(module, "rope_type", None)
    rope = rope.values() if isinstance(rope, dict) else (rope,)
    varies = any(each in _BY_LENGTH for each in rope) and "original" not in name
    return varies and name.endswith(_SET_BY_LENGTH)


def _same_tensor(own, made):
    if own.shape != made.shape or own.is_meta or made.is_meta:
        return own.shape == made.shape
    return torch.equal(own.detach().cpu(), made.to(own.dtype))


def _same(own, made):
    """True if a setting is as it was made. Of other objects than numbers and containers the type counts."""
    if own is made:
        return True
    if isinstance(made, torch.Tensor):
        return isinstance(own, torch.Tensor) and _same_tensor(own, made)
    if isinstance(made, (list, tuple)):
        return type(own) is type(made) and len(own) == len(made) and all(map(_same, own, made))
    if isinstance(made, dict):
        return (
            type(own) is type(made)
            and own.keys() == made.keys()
            and all(_same(own[k], made[k]) for k in made)
        )
    if hasattr(made, "to_dict"):  # a config
        return type(own) is type(made) and own.to_dict() == made.to_dict()
    if callable(made):
        return classes.name_of(own) == classes.name_of(made)
    return own == made if isinstance(made, (bool, int, float, str, torch.dtype)) else type(own) is type(made)


def _kept_names(tensors):
    return {name for name, each in tensors.items() if each is not None}


class Blueprint:
    """The modules of a model as its class makes them."""

    def __init__(self, root):
        cls = classes.original_of(root) or type(root)
        with torch.random.fork_rng(devices=[]), torch.device("cpu"), _WithoutMemory(), torch.no_grad():
            self._modules = dict(cls(root.config).named_modules())

    def _change_of(self, module, made):
        """Returns what was changed in a module, or ""."""
        cls = classes.original_of(module) or type(module)
        if not cls.__module__.startswith(_OWN_MODULES):
            return f"is a {classes.class_name(cls)}: an adapter, or other code"
        if not classes.is_own(module):
            return f"is a {classes.class_name(type(module))}, a class that others made of its own"
        hooks = [*module._forward_hooks.values(), *module._forward_pre_hooks.values()]
        if "forward" in module.__dict__ or any(each.__module__ != _CAPTURE for each in hooks):
            return "has a hook, or a forward of its own"
        if made is None or cls is not type(made):
            return f"is a {cls.__qualname__}, where its config makes {type(made).__qualname__}"
        if not cls.forward.__module__.startswith(_OWN_MODULES):
            return f"has a forward from {classes.name_of(cls.forward)}"
        if _kept_names(module._parameters) != _kept_names(made._parameters):
            return f"has the weights {', '.join(sorted(_kept_names(module._parameters)))}"
        for name, value in made.__dict__.items():
            if not _is_idle(module, name) and not _same(module.__dict__.get(name), value):
                return f"has another {name} than its config makes"
        return ""

    def change(self, root):
        """Returns what a model has that its config does not say, or ""."""
        modules = dict(root.named_modules())
        for name, module in modules.items():
            if reason := self._change_of(module, self._modules.get(name)):
                return f"{name or 'the model'} {reason}"
        missing = self._modules.keys() - modules.keys()
        return f"{min(missing)} is missing" if missing else ""

    def change_of_buffers(self, root):
        """As `change`, of the numbers of `buffers`."""
        own, made = (dict(_buffers(modules)) for modules in (root.named_modules(), self._modules.items()))
        for name in sorted(own.keys() | made.keys()):
            if name not in own or name not in made:
                return f"{name} is a buffer of one of both: the model, and what its config makes"
            module, each = made[name]
            if not _is_idle(module, each) and not _same_tensor(
                own[name][0]._buffers[each], module._buffers[each]
            ):
                return f"{name} has other numbers than its config makes"
        return ""


def _buffers(modules):
    """(name, (module, its name in the module)) of tensors that a state dict lacks."""
    for name, module in modules:
        for each in sorted(module._non_persistent_buffers_set):
            if module._buffers.get(each) is not None:
                yield f"{name}.{each}", (module, each)


def buffers(root):
    """The tensors that a model computes with and its state dict lacks, by name."""
    return {name: module._buffers[each] for name, (module, each) in _buffers(root.named_modules())}
