"""Demos: each computes both sides of a claim of heddle, and compares them.

>>> heddle.demos.attention.streams(quick=True)
"200,000 positions: ..."

A demo raises AssertionError where the claim does not hold, and returns what it found as a text.
"""

from heddle.demos import attention, claim, training

DEMOS = {
    "flex": attention.flex,
    "sparse": attention.sparse,
    "streams": attention.streams,
    "ring": attention.ring,
    "fusion": training.fusion,
    "optimizer": training.optimizer,
    "memory": training.memory,
    "shapes": training.shapes,
    "fp8": training.fp8,
    "mixtures": training.mixtures,
    "sparsity": training.sparsity,
}

__all__ = ["DEMOS", "claim"]
