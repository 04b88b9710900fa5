"""transformers' attn_implementation="heddle" in models that are not patched: all calls are heddle's, and
masks are functions, of which no [queries, keys] is made."""

import torch
from torch.nn.attention.flex_attention import BlockMask

from heddle.errors import Unsupported
from heddle.flex import and_masks, create_block_mask
from heddle.flex.flex import attend as attend_scored
from heddle.parallel.context import is_active as is_shared

REFUSED = ("output_attentions", "head_mask", "cache")


class _Mask(BlockMask):
    def contiguous(self):
        """`generate` with a static cache asks for it."""
        return self


def mask(
    batch_size,
    q_length,
    kv_length,
    q_offset=0,
    kv_offset=0,
    mask_function=None,
    attention_mask=None,
    device="cpu",
    **_,
):
    """A BlockMask, as transformers makes one for "flex_attention"."""

    def seen(b, h, q_idx, kv_idx):
        return mask_function(b, h, q_idx + q_offset, kv_idx + kv_offset)

    if attention_mask is not None and not attention_mask.all():
        is_token = attention_mask[:, kv_offset : kv_offset + kv_length]
        is_token = torch.nn.functional.pad(is_token, (0, kv_length - is_token.shape[1]))
        seen = and_masks(seen, lambda b, h, q_idx, kv_idx: is_token[b, kv_idx])
    made = create_block_mask(seen, batch_size, None, q_length, kv_length, device=device)
    made.__class__ = _Mask
    return made


def refuse_shared(name):
    """Raises in context_parallel, of whose other ranks the function of that name knows nothing."""
    if is_shared():
        raise Unsupported(
            f'[attn_implementation="{name}"] is not for context_parallel; "heddle_cp" is for it'
        )


def attend(
    module,
    query,
    key,
    value,
    attention_mask,
    dropout=0.0,
    scaling=None,
    is_causal=None,
    softcap=None,
    s_aux=None,
    position_bias=None,
    **options,
):
    """The function of transformers' interface. `attention_mask`: a BlockMask, or the caller's own tensor."""
    if dropout:
        raise Unsupported(
            f'[attn_implementation="heddle"] attention has dropout {dropout}; set attention_dropout to 0, or'
            " call model.eval()"
        )
    refuse_shared("heddle")
    for name in REFUSED:
        if options.get(name) is not None and options[name] is not False:
            raise Unsupported(f'[attn_implementation="heddle"] a call with {name}; "eager" takes it')
    others = {"softcap": softcap or 0.0, "sinks": s_aux, "bias": position_bias}
    blocks = attention_mask if isinstance(attention_mask, BlockMask) else None
    if isinstance(attention_mask, torch.Tensor):
        added = _added(attention_mask[..., : key.shape[2]], query.dtype)
        others["bias"] = added if position_bias is None else position_bias + added
    elif attention_mask is None:
        causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
        if causal and query.shape[2] > 1:  # a static cache has more keys
            key, value = (each[:, :, : query.shape[2]] for each in (key, value))
            others["causal"] = True
    others = {name: each for name, each in others.items() if each is not None}
    made, _ = attend_scored(query, key, value, block_mask=blocks, scale=scaling, **others)
    return made.transpose(1, 2), None


def _added(mask, dtype):
    """A mask of booleans as what is added to scores."""
    if mask.dtype != torch.bool:
        return mask
    return torch.zeros((), dtype=dtype, device=mask.device).where(mask, float("-inf"))
