"""Attention of long prompts that visits the blocks of keys that matter."""

from heddle.sparse.blocks import METHODS
from heddle.sparse.prefill import SparseReport, sparse_prefill

__all__ = ["METHODS", "SparseReport", "sparse_prefill"]
