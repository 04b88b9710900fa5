"""transformers' attn_implementation="heddle_sparse": prompts whose mask is causal alone go through
sparse_prefill with its defaults; all other calls are those of "heddle"."""

import logging

from transformers.masking_utils import AttentionMaskInterface, causal_mask_function
from transformers.modeling_utils import AttentionInterface

from heddle.patching import interface
from heddle.sparse import sparse_prefill

NAME = "heddle_sparse"
_log = logging.getLogger("heddle")
_OTHERS = ("softcap", "s_aux", "position_bias", *interface.REFUSED)


def mask(*sizes, mask_function=causal_mask_function, attention_mask=None, **given):
    """No mask where it is causal alone: `attend` takes it so."""
    padded = attention_mask is not None and not attention_mask.all()
    if mask_function is causal_mask_function and not padded:
        return None
    return interface.mask(*sizes, mask_function=mask_function, attention_mask=attention_mask, **given)


def _why_dense(module, query, key, attention_mask, options):
    """Returns why a call has nothing to leave out for sparse_prefill, or ""."""
    causal = options.get("is_causal")
    causal = getattr(module, "is_causal", True) if causal is None else causal
    if attention_mask is not None or not causal:
        return "its mask is not causal alone"
    if query.shape[2] == 1:
        return "it has one query"
    if options.get("dropout") or any(options.get(name) not in (None, False) for name in _OTHERS):
        return "it has options that sparse_prefill lacks"
    return "" if query.shape[2] == key.shape[2] else "its cache has more keys than queries"


def attend(module, query, key, value, attention_mask, **options):
    """The function of transformers' interface."""
    interface.refuse_shared(NAME)
    reason = _why_dense(module, query, key, attention_mask, options)
    if not reason:
        return sparse_prefill(query, key, value, scale=options.get("scaling")).transpose(1, 2), None
    if query.shape[2] > 1:
        _log.info('attn_implementation="heddle_sparse": a prompt in dense attention, since %s', reason)
    return interface.attend(module, query, key, value, attention_mask, **options)


AttentionInterface.register(NAME, attend)
AttentionMaskInterface.register(NAME, mask)
