"""Mixtures of experts that train: products over tokens sorted by expert, without a wait of the host.

>>> import heddle.moe
>>> model.set_experts_implementation("heddle")  # transformers' Qwen3-MoE, Mixtral, gpt-oss, DeepSeek ...
>>> y = heddle.moe.grouped_mlp(x, index, shares, gate_up, down)  # or a layer by itself
"""

from heddle.moe.experts import NAME, expert_paths, experts_forward
from heddle.moe.layer import grouped_mlp

__all__ = ["NAME", "expert_paths", "experts_forward", "grouped_mlp"]
