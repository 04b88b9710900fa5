"""Optimizers: real `torch.optim.Optimizer`s whose update is one pass over all tensors.

>>> optimizer = heddle.optim.AdamW(model.parameters(), lr=3e-4)
>>> optimizer = heddle.optim.AdamW8bit(model.parameters(), lr=3e-4)  # states take 2 bytes in place of 8
>>> optimizer = heddle.optim.OffloadAdamW(model.parameters(), lr=3e-4)  # states lie on the host

See docs/training.md.
"""

from heddle.optim.adamw import AdamW, AdamW8bit
from heddle.optim.offload import OffloadAdamW

__all__ = ["AdamW", "AdamW8bit", "OffloadAdamW"]
