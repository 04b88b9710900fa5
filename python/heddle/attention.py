"""Attention: power attention, attention with functions of scores and masks, over streams, over several
processes, and of long prompts.

All but the first need torch. Their homes are heddle.flex, heddle.segments, heddle.parallel and heddle.sparse;
the names are here too: flex_attention, create_block_mask, ready mods, block_lists; SegmentedAttentionMemory,
LongSequenceOptimizer; context_parallel, ring_attention, ulysses_attention, mean_loss; sparse_prefill.
"""

import importlib

from heddle.errors import UnknownName
from heddle.power import power_attention as power_attention

TYPE_CHECKING = False  # a type checker takes it for true
if TYPE_CHECKING:
    from heddle.flex import *  # noqa: F403
    from heddle.parallel import *  # noqa: F403
    from heddle.segments import *  # noqa: F403
    from heddle.sparse import *  # noqa: F403

_HOMES = ("heddle.flex", "heddle.segments", "heddle.parallel", "heddle.sparse")


def register_transformers() -> None:
    """Lets models of transformers have attn_implementation="heddle", with masks as functions, and
    "heddle_sparse", which is the same but for long prompts: these go through sparse_prefill."""
    importlib.import_module("heddle.patching.attention")
    importlib.import_module("heddle.patching.sparse")


def __getattr__(name):
    homes = () if name.startswith("_") else map(importlib.import_module, _HOMES)
    for home in homes:
        if name in home.__all__:
            return getattr(home, name)
    raise UnknownName(f"heddle.attention has no {name}")
