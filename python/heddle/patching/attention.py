"""Attention: transformers' interface has a function "heddle", with the masks of "sdpa"."""

import torch
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask
from transformers.modeling_utils import AttentionInterface

import heddle.ops
from heddle.patching import classes, fits

NAME, OWN = "heddle", "sdpa"  # what a config names when the model is patched, and otherwise
_OPTIONS = ("position_bias", "cache", "softcap", "s_aux", "output_attentions", "head_mask")
_HEAD_DIMS = (64, 96)  # for which the kernel for Hopper is as fast as cuDNN's, or faster
_verdicts = {}  # dtypes, devices and head dimensions to why they are not for heddle


def _judge(query, key, value):
    """Why tensors of such types are not for heddle; empty: they are."""
    if reason := fits.tensors(query, key, value):
        return reason
    if not query.dtype == key.dtype == value.dtype:
        return "query, key and value have several dtypes"
    if query.shape[1] % key.shape[1] or max(query.shape[3], value.shape[3]) > 256:
        return "heads are wider than 256, or those of queries no multiple of the others"
    return ""


def _slower(kind, module, query, value):
    """Why torch is as fast for this call; empty: it is not."""
    if query.is_cpu:
        return kind.slower(module, query)
    if torch.is_grad_enabled() and query.requires_grad:
        return "torch's gradient of attention is faster on a GPU"
    if query.dtype == torch.float32 or query.shape[3] != value.shape[3] or query.shape[3] not in _HEAD_DIMS:
        return "torch is as fast on a GPU, but for heads of 64 or 96 in f16 or bf16"
    if torch.cuda.get_device_capability(query.device)[0] != 9:
        return "heddle's kernel is for Hopper"
    return "" if query.shape[2] >= 128 else "torch is as fast for so few queries"


def _reason(kind, module, query, key, value, mask, dropout, options):
    """Why the call is torch's; empty: it is heddle's."""
    if mask is not None:
        return "the call has a mask"
    if dropout:
        return "the call has dropout"
    if used := [name for name in _OPTIONS if options.get(name)]:
        return f"the call has {', '.join(used)}"
    if query.shape[2] not in (1, key.shape[2]):
        return "there are more keys than queries, and no mask"
    if reason := _slower(kind, module, query, value):
        return reason
    facts = [
        (type(each), each.dtype, each.device, each.shape[1], each.shape[3]) for each in (query, key, value)
    ]
    reason = _verdicts.get(tuple(facts))
    if reason is None:
        reason = _verdicts[tuple(facts)] = _judge(query, key, value)
    if not reason and fits.transformed():
        return fits.IN_TRANSFORM
    if not reason and torch.is_autocast_enabled(query.device.type):
        return fits.IN_AUTOCAST
    return reason


def attend(module, query, key, value, attention_mask, dropout=0.0, scaling=None, is_causal=None, **options):
    """The function of transformers' interface. Modules that are not patched get torch's."""
    kind = getattr(type(module), "_heddle_kind", None)
    own = dict(dropout=dropout, scaling=scaling, is_causal=is_causal, **options)
    if kind is None or torch.compiler.is_compiling():
        return sdpa_attention_forward(module, query, key, value, attention_mask, **own)
    reason = _reason(kind, module, query, key, value, attention_mask, dropout, options)
    calls = module.__dict__[classes.CALLS]
    calls[reason] = calls.get(reason, 0) + 1
    if reason:
        return sdpa_attention_forward(module, query, key, value, attention_mask, **own)
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    made, _ = heddle.ops.flash_attention(
        *(each.transpose(1, 2) for each in (query, key, value)),
        causal=bool(causal) and query.shape[2] > 1,
        scale=query.shape[3] ** -0.5 if scaling is None else scaling,
    )
    return made, None


AttentionInterface.register(NAME, attend)
AttentionMaskInterface.register(NAME, sdpa_mask)


def use(module, name):
    """Has the config of an attention module name that function."""
    if module.config._attn_implementation in (NAME, OWN):
        module.config._attn_implementation = name


def trial(kind):
    """Compares with torch's function; why heddle is not used, or nothing."""
    module = torch.nn.Module()
    module.__class__ = classes.stand_in(torch.nn.Module, kind)
    module.__dict__.update({classes.CALLS: {}, "num_key_value_groups": 2, "is_causal": True})
    query, key, value = (torch.linspace(-1, 1, heads * 80).sin().view(1, heads, 5, 16) for heads in (4, 2, 2))
    expected, got = (f(module.eval(), query, key, value, None)[0] for f in (sdpa_attention_forward, attend))
    calls = module.__dict__[classes.CALLS]
    if calls != {"": 1}:
        return f"heddle does not run here: {next(iter(calls))}"
    if got.shape != expected.shape or not torch.allclose(got, expected, atol=1e-5):
        return "the sdpa of this transformers computes something else"
    return ""
