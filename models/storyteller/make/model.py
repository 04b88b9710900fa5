"""The storyteller for training: a Llama with parameters named as transformers names them.

Written out because training packs documents into rows under a mask by document, which flex attention fuses.
"""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention.flex_attention import BlockMask, flex_attention


@dataclass(frozen=True)
class Shape:
    vocabulary: int = 3072
    hidden: int = 256
    layers: int = 5
    heads: int = 8
    kv_heads: int = 2
    head_dim: int = 32
    inner: int = 512
    context: int = 768
    theta: float = 10000.0
    epsilon: float = 1e-5


class Attention(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.shape = shape
        self.q_proj = nn.Linear(shape.hidden, shape.heads * shape.head_dim, bias=False)
        self.k_proj = nn.Linear(shape.hidden, shape.kv_heads * shape.head_dim, bias=False)
        self.v_proj = nn.Linear(shape.hidden, shape.kv_heads * shape.head_dim, bias=False)
        self.o_proj = nn.Linear(shape.heads * shape.head_dim, shape.hidden, bias=False)

    def forward(self, x, rotary, mask):
        q, k, v = (
            project(x)
            .unflatten(-1, (-1, self.shape.head_dim))
            .transpose(1, 2)  # [batch, heads, seq, head_dim]
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        q, k = rotate(q, rotary), rotate(k, rotary)
        if isinstance(mask, BlockMask):
            y = flex_attention(q, k, v, block_mask=mask, enable_gqa=True)
        else:
            y = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
        return self.o_proj(y.transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.gate_proj = nn.Linear(shape.hidden, shape.inner, bias=False)
        self.up_proj = nn.Linear(shape.hidden, shape.inner, bias=False)
        self.down_proj = nn.Linear(shape.inner, shape.hidden, bias=False)

    def forward(self, x):
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.input_layernorm = nn.RMSNorm(shape.hidden, shape.epsilon)
        self.self_attn = Attention(shape)
        self.post_attention_layernorm = nn.RMSNorm(shape.hidden, shape.epsilon)
        self.mlp = Mlp(shape)

    def forward(self, x, rotary, mask):
        x = x + self.self_attn(self.input_layernorm(x), rotary, mask)
        return x + self.mlp(self.post_attention_layernorm(x))


class Stack(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocabulary, shape.hidden)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.hidden, shape.epsilon)


class Storyteller(nn.Module):
    """tokens, positions [batch, seq] -> logits [batch, seq, vocabulary]; the head is the embedding."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.shape = shape
        self.model = Stack(shape)
        residual_scale = (2 * shape.layers) ** -0.5
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                last = name.endswith(("o_proj.weight", "down_proj.weight"))
                nn.init.normal_(weight, std=0.02 * (residual_scale if last else 1))

    def forward(self, tokens, positions, mask):
        rotary = angles(positions, self.shape)
        x = self.model.embed_tokens(tokens)
        for layer in self.model.layers:
            x = layer(x, rotary, mask)
        return functional.linear(self.model.norm(x), self.model.embed_tokens.weight)


def angles(positions, shape: Shape):
    """cos and sin of position * theta^(-2i / head_dim), [batch, 1, seq, head_dim / 2]."""
    power = torch.arange(0, shape.head_dim, 2, device=positions.device) / shape.head_dim
    angle = positions[:, None, :, None] * shape.theta**-power
    return angle.cos(), angle.sin()


def rotate(x, rotary):
    """Turns each pair (i, i + head_dim / 2), in fp32."""
    cos, sin = rotary
    a, b = x.float().chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1).to(x.dtype)
