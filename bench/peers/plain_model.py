"""A decoder in the fewest lines of eager PyTorch: what the fast step is checked against, not what is timed.

In fp32 it is the reference; in bf16 it rounds where transformers rounds, and says what error bf16 has.
"""

from contextlib import nullcontext

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel


def rope_tables(frequencies, positions):
    """cos and sin, f32 [positions, head_dim / 2]."""
    angles = positions.float()[:, None] * frequencies.to(positions.device)
    return angles.cos(), angles.sin()


def rotate(x, cos, sin):
    """The first half of each head turned against its second half; tables broadcast over the heads."""
    first, second = x.chunk(2, -1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


class PlainModel:
    def __init__(self, weights):
        self.weights, self.shape = weights, weights.shape

    @property
    def device(self):
        return self.weights.embedding.device

    def norm(self, x, affine):
        if not self.shape.is_rms:
            return F.layer_norm(x, x.shape[-1:], *affine, self.shape.epsilon)
        wide = x.float()
        wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.shape.epsilon)
        return affine.weight * wide.to(x.dtype)

    def attention(self, x, layer, scale, tables):
        """The output of attention for x [n, hidden]; the keys and values, [kv_heads, n, head_dim] each."""
        q, k, v = (
            F.linear(x, *affine).view(len(x), -1, self.shape.head_dim).transpose(0, 1)
            for affine in (layer.q, layer.k, layer.v)
        )
        if tables is not None:
            q, k = rotate(q, *tables), rotate(k, *tables)
        group = self.shape.heads // self.shape.kv_heads
        wide_k, wide_v = (t.repeat_interleave(group, 0) for t in (k, v))
        # fp32 as it is written down; else the kernel that transformers gets too.
        with sdpa_kernel(SDPBackend.MATH) if x.dtype == torch.float32 else nullcontext():
            mixed = F.scaled_dot_product_attention(
                q[None], wide_k[None], wide_v[None], is_causal=True, scale=scale
            )
        return F.linear(mixed[0].transpose(0, 1).reshape(len(x), -1), *layer.o), k, v

    def mlp(self, x, layer):
        up = F.linear(x, *layer.up)
        if layer.gate is None:
            return F.linear(self.shape.activation(up), *layer.down)
        return F.linear(self.shape.activation(F.linear(x, *layer.gate)) * up, *layer.down)

    @torch.no_grad()
    def forward(self, tokens, last):
        """Logits, f32 [last, vocab], after the last of `tokens` [n], and the keys and values by layer."""
        positions = torch.arange(len(tokens), device=tokens.device)
        x, tables, cache = self.weights.embedding[tokens], None, []
        if self.weights.positions is not None:
            x = x + self.weights.positions[positions]
        else:
            tables = [t.to(x.dtype) for t in rope_tables(self.shape.frequencies, positions)]
        for layer, scale in zip(self.weights.layers, self.shape.scales, strict=True):
            added, k, v = self.attention(self.norm(x, layer.norm1), layer, scale, tables)
            x = x + added
            x = x + self.mlp(self.norm(x, layer.norm2), layer)
            cache.append((k, v))
        return F.linear(self.norm(x[-last:], self.weights.norm), self.weights.head).float(), cache
