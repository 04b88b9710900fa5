"""FlexAttention: functions of the caller's for scores and masks, traced and compiled into flash_attention."""

from heddle.flex.flex import flex_attention
from heddle.flex.lists import block_lists
from heddle.flex.masks import create_block_mask
from heddle.flex.mods import (
    alibi,
    and_masks,
    causal,
    chained,
    dilated,
    documents,
    or_masks,
    prefix,
    relative_bias,
    sliding_window,
    softcap,
)
from heddle.flex.ops import compilations

__all__ = [
    "alibi",
    "and_masks",
    "block_lists",
    "causal",
    "chained",
    "compilations",
    "create_block_mask",
    "dilated",
    "documents",
    "flex_attention",
    "or_masks",
    "prefix",
    "relative_bias",
    "sliding_window",
    "softcap",
]
