"""Attention of sequences that several processes share, over torch.distributed."""

from heddle.parallel.attention import ring_attention
from heddle.parallel.context import Parallel, context_parallel
from heddle.parallel.loss import mean_loss, shift_labels
from heddle.parallel.shards import Shards, deal
from heddle.parallel.ulysses import ulysses_attention

__all__ = [
    "Parallel",
    "Shards",
    "context_parallel",
    "deal",
    "mean_loss",
    "ring_attention",
    "shift_labels",
    "ulysses_attention",
]
