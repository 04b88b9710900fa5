"""Attention: transformers' interface has a function "heddle". Patched modules have it with the masks of
"sdpa"; in models that are not, all calls are heddle's (heddle.patching.interface)."""

import weakref

import torch
from torch.utils.weak import WeakIdKeyDictionary
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask
from transformers.modeling_utils import AttentionInterface

import heddle.ops
from heddle.parallel.context import is_active as is_shared
from heddle.patching import classes, fits, interface, masks, shared

NAME, OWN = "heddle", "sdpa"  # the functions of a patched module and of others
_OPTIONS = ("position_bias", "cache", "softcap", "s_aux", "output_attentions", "head_mask")
_HEAD_DIMS = (64, 96)  # for which the kernel for Hopper is as fast as cuDNN's, or faster
_verdicts = fits.verdicts()  # dtypes, devices and head dimensions to why they are not for heddle


class _Patched(str):
    """The function's name in the config of a patched module. `before`: what the config had."""


def _is_patched(config):
    return isinstance(getattr(config, "_attn_implementation", None), _Patched)


def _judge(query, key, value):
    """Returns why heddle does not take tensors of such types, or ""."""
    if reason := fits.tensors(query, key, value):
        return reason
    if not query.dtype == key.dtype == value.dtype:
        return "query, key and value have several dtypes"
    if query.shape[1] % key.shape[1] or max(query.shape[3], value.shape[3]) > 256:
        return "heads are wider than 256, or those of queries no multiple of the others"
    return ""


def _slower_on_gpu(query, value, masked):
    """Returns why torch is as fast for this call, or "" where it is not."""
    dims = query.shape[3], value.shape[3]
    trains = torch.is_grad_enabled() and query.requires_grad
    if query.dtype == torch.float32:
        return "torch is as fast on a GPU in float32"
    if torch.cuda.get_device_capability(query.device)[0] != 9:
        return "heddle's kernel is for Hopper"
    if query.shape[2] < 128:
        return "torch is as fast for so few queries"
    if masked:  # torch has no kernel for Hopper then
        return "torch is as fast in training with heads wider than 128" if trains and max(dims) > 128 else ""
    if trains:
        return "torch's gradient of attention is faster on a GPU"
    if dims[0] != dims[1] or dims[0] not in _HEAD_DIMS:
        return "torch is as fast on a GPU, but for heads of 64 or 96"
    return ""


def _unfit(query, key, mask, dropout, options):
    """Returns what the call asks for and heddle lacks, or ""."""
    if dropout:
        return "the call has dropout"
    if used := [name for name in _OPTIONS if options.get(name) is not None and options[name] is not False]:
        return f"the call has {', '.join(used)}"
    if mask is None:
        return ""
    sizes = (*query.shape[:3], key.shape[2])
    if type(mask) is not torch.Tensor or mask.dtype not in (torch.bool, *fits.FLOATS):
        return "its mask is no tensor of bool or float"
    if mask.device != query.device:
        return "its mask is on another device"
    if mask.dim() != 4 or any(have not in (1, need) for have, need in zip(mask.shape, sizes, strict=True)):
        return "its mask has other sizes"
    return "" if mask.shape[2:] == sizes[2:] else "its mask has rows or columns for all"


def _reason(kind, module, query, key, value, mask, dropout, options):
    """Returns why the call is torch's; "" where it is heddle's, unless its mask says otherwise."""
    if reason := _unfit(query, key, mask, dropout, options):
        return reason
    if query.is_cpu:
        reason = kind.slower(module, query) or (
            "" if mask is not None else kind.slower_unmasked(module, query, key)
        )
    elif query.is_cuda:
        reason = _slower_on_gpu(query, value, mask is not None)
    else:
        reason = ""  # its device is judged below
    if reason:
        return reason
    facts = tuple(
        (type(each), each.dtype, each.device, each.shape[1], each.shape[3]) for each in (query, key, value)
    )
    reason = _verdicts.get(facts)
    if reason is None:
        reason = _verdicts[facts] = _judge(query, key, value)
    if not reason and fits.transformed():
        return fits.IN_TRANSFORM
    if not reason and is_shared():
        return "context_parallel stands in for torch's function"
    if not reason and torch.is_autocast_enabled(query.device.type):
        return fits.IN_AUTOCAST
    return reason


def _unmasked(module, query, key, value, is_causal):
    """(q, k, v, the plan) of a call without a mask: a query sees the keys up to its own number, of which a
    static cache may have more."""
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    causal = bool(causal) and query.shape[2] > 1
    if causal and key.shape[2] > query.shape[2]:
        key, value = (each[:, :, : query.shape[2]] for each in (key, value))
    plan = masks.Plan({"causal": causal, "q_offset": query.shape[2] - key.shape[2] if causal else 0})
    return query, key, value, plan


def attend(module, query, key, value, attention_mask, dropout=0.0, scaling=None, is_causal=None, **options):
    """The function of transformers' interface. In a patched model, modules that are not get torch's."""
    kind = getattr(type(module), "_heddle_kind", None)
    own = dict(dropout=dropout, scaling=scaling, is_causal=is_causal, **options)
    chosen = kind is None and not _is_patched(getattr(module, "config", None))
    if chosen or isinstance(attention_mask, interface.BlockMask):
        return interface.attend(module, query, key, value, attention_mask, **own)
    if kind is None or torch.compiler.is_compiling():
        return sdpa_attention_forward(module, query, key, value, attention_mask, **own)
    reason = _reason(kind, module, query, key, value, attention_mask, dropout, options)
    given = query, key, value
    if not reason and attention_mask is not None:
        plan = masks.plan_of(attention_mask, query.shape[0], key.shape[2], getattr(module, "layer_idx", None))
        reason = kind.slower_masked(module, query, key, plan.share) if query.is_cpu else ""
    elif not reason:
        *given, plan = _unmasked(module, query, key, value, is_causal)
    calls = module.__dict__[classes.CALLS]
    calls[reason] = calls.get(reason, 0) + 1
    if reason:
        return sdpa_attention_forward(module, query, key, value, attention_mask, **own)
    made, _ = heddle.ops.flash_attention(
        *plan.tensors(*(each.transpose(1, 2) for each in given)),
        scale=query.shape[3] ** -0.5 if scaling is None else scaling,
        **plan.attributes,
    )
    return made.view(query.shape[0], query.shape[2], *made.shape[2:]), None


def mask(*sizes, config=None, **given):
    """The mask of a model whose config names the function."""
    make = sdpa_mask if config is None or _is_patched(config) else interface.mask
    return make(*sizes, config=config, **given)


AttentionInterface.register(NAME, attend)
AttentionMaskInterface.register(NAME, mask)
AttentionInterface.register(shared.NAME, shared.attend)
AttentionMaskInterface.register(shared.NAME, shared.mask)


class _View:
    """The config of a patched module as the module sees it: it names heddle's function for torch's.
    What other models, and continuous batching, make of the name is of no consequence for the module."""

    __slots__ = ("_of",)

    def __init__(self, config):
        object.__setattr__(self, "_of", config)

    @property
    def _attn_implementation(self):
        name = self._of._attn_implementation
        return _patched(name) if name == OWN else name

    @property
    def __class__(self):
        return type(self._of)

    def __getattr__(self, name):
        return getattr(self._of, name)

    def __setattr__(self, name, value):
        setattr(self._of, name, value)

    def __eq__(self, other):
        return self._of == other

    __hash__ = None

    def __repr__(self):
        return repr(self._of)

    def __reduce_ex__(self, protocol):
        return self._of.__reduce_ex__(protocol)


def _config(module):
    own = module.__dict__.get("config")
    return own if own is None or torch.compiler.is_compiling() else _View(own)


def _set_config(module, config):
    module.__dict__["config"] = config._of if type(config) is _View else config


CONFIG = property(_config, _set_config)  # the `config` of patched modules

_USERS = WeakIdKeyDictionary()  # a config, which models may share, to the patched modules that have it


def _patched(before):
    name = _Patched(NAME)
    name.before = before
    return name


def use(module):
    """Has the config of a module, which is patched, name heddle's function."""
    config = module.__dict__["config"]
    _USERS.setdefault(config, weakref.WeakSet()).add(module)
    if not _is_patched(config) and config._attn_implementation in (NAME, OWN):
        config._attn_implementation = _patched(config._attn_implementation)


def leave(module):
    """The config of a module, which is patched no more, names what it did, unless others are patched."""
    config = module.__dict__["config"]
    users = _USERS.get(config, weakref.WeakSet())
    users.discard(module)
    if not users and _is_patched(config):
        config._attn_implementation = config._attn_implementation.before


class Batching:
    """Stands in for a model's init_continuous_batching, which wants functions by name, and gets "sdpa"."""

    METHOD = "init_continuous_batching"

    def __init__(self, root):
        self.root = root

    def __call__(self, *arguments, **keywords):
        if self.root.config._attn_implementation == NAME:
            self.root.config._attn_implementation = OWN
        return getattr(type(self.root), self.METHOD)(self.root, *arguments, **keywords)

    @classmethod
    def put_on(cls, root):
        if hasattr(root, cls.METHOD) and cls.METHOD not in root.__dict__:
            root.__dict__[cls.METHOD] = cls(root)

    @classmethod
    def take_off(cls, root):
        if isinstance(root.__dict__.get(cls.METHOD), cls):
            del root.__dict__[cls.METHOD]


def trial(kind):
    """Compares with torch's function; why heddle is not used, or nothing."""
    module = torch.nn.Module()
    module.__class__ = classes.make(torch.nn.Module, kind)
    module.__dict__.update({classes.CALLS: {}, "num_key_value_groups": 2, "is_causal": True})
    query, key, value = (
        torch.linspace(-1, 1, heads * 80, dtype=torch.float32).sin().view(1, heads, 5, 16)
        for heads in (4, 2, 2)
    )
    expected, got = (f(module.eval(), query, key, value, None)[0] for f in (sdpa_attention_forward, attend))
    calls = module.__dict__[classes.CALLS]
    if calls != {"": 1}:
        return f"heddle does not run here: {next(iter(calls))}"
    if got.shape != expected.shape or not torch.allclose(got, expected, atol=1e-5):
        return "the sdpa of this transformers computes something else"
    return ""
