"""Times a greedy decode step of Llama or GPT-2 in plain PyTorch, written for speed, on one GPU.

    python3 bench/peers/torch_gpu.py MODEL [--positions 512,0,4096] [--rounds 5] [--compile-cache FILE]

Needs torch and the checkpoint, nothing else. Weights are fused, the cache is static, RoPE's tables are made
before; the whole step, from a token to the next, is compiled and replayed as one CUDA graph. It is written in
several forms, each compiled in several ways. The fastest at a position is reported, and all are named:

    products     `reductions`: a row of weights times the input, summed; norms and activations fuse with it.
                 `library`: cuBLAS, or the templates that max-autotune picks.
    attention    `reductions`, `flex` (flex_attention, which splits the keys), or `sdpa`

Each is checked where it is timed: the logits of CHECKED tokens that the replayed step makes must be as near
to those of the plain model in fp32 as the plain model in bf16 is, within FACTOR; else it gets no speed.
"""

from functools import partial

import harness
import torch
import torch.nn.functional as F
from checkpoint import Affine, read_config, read_weights
from harness import Bench, Variant, Work
from plain_model import PlainModel, rope_tables, rotate
from torch import nn
from torch.nn.attention.flex_attention import flex_attention

CHECKED = 8
FACTOR = 1.5
CACHE_STEP = 64  # the cache is as long as the position asks, up to a multiple of this

AUTOTUNE = {"max_autotune": True, "coordinate_descent_tuning": True}
TEMPLATES = {"max_autotune": True, "coordinate_descent_tuning": False}
REDUCTIONS = {"products": "reductions", "attention": "reductions"}
FLEX = {"products": "reductions", "attention": "flex"}
LIBRARY = {"products": "library", "attention": "sdpa"}

VARIANTS = [
    Variant("reductions+autotune+graph", AUTOTUNE, form=REDUCTIONS),
    Variant("reductions+flex+autotune+graph", AUTOTUNE, form=FLEX),
    Variant("reductions+autotune+dependent+graph", AUTOTUNE | {"triton.enable_pdl": True}, form=REDUCTIONS),
    Variant("library+autotune+graph", TEMPLATES, form=LIBRARY),
    Variant("library+reduce-overhead", {"triton.cudagraphs": True}, captured=False, form=LIBRARY),
]


class Linear(nn.Module):
    """Rows of weights; those of several layers with the same input lie one after another."""

    def __init__(self, *affines):
        super().__init__()
        biases = [a.bias for a in affines if a.bias is not None]
        weights = [a.weight for a in affines]
        self.register_buffer("weight", torch.cat(weights) if len(weights) > 1 else weights[0])
        self.register_buffer("bias", torch.cat(biases).float() if biases else None)

    def forward(self, x, products, begin=0, end=None):
        """The rows from `begin` to `end` times x, in fp32."""
        weight = self.weight[begin:end]
        x = x.to(weight.dtype)
        if products == "library":
            y = F.linear(x[None], weight)[0].float()
        else:
            y = (weight.float() * x.float()).sum(-1)
        return y if self.bias is None else y + self.bias[begin:end]


class Norm(nn.Module):
    def __init__(self, affine, shape):
        super().__init__()
        self.epsilon, self.is_rms = shape.epsilon, shape.is_rms
        self.register_buffer("weight", affine.weight.float())
        self.register_buffer("bias", None if affine.bias is None else affine.bias.float())

    def forward(self, x):
        if not self.is_rms:
            return F.layer_norm(x, x.shape, self.weight, self.bias, self.epsilon)
        return x * torch.rsqrt(x.square().mean() + self.epsilon) * self.weight


class FusedLayer(nn.Module):
    """A layer's weights; several steps may use them."""

    def __init__(self, layer, shape):
        super().__init__()
        self.activation, self.gated = shape.activation, layer.gate is not None
        self.inner = len(layer.up.weight)
        self.norm1, self.norm2 = Norm(layer.norm1, shape), Norm(layer.norm2, shape)
        self.qkv, self.o = Linear(layer.q, layer.k, layer.v), Linear(layer.o)
        self.up = Linear(layer.gate, layer.up) if self.gated else Linear(layer.up)
        self.down = Linear(layer.down)

    def mlp(self, x, products):
        if not self.gated:
            return self.down(self.activation(self.up(x, products)), products)
        if products == "library":
            gate, up = self.up(x, products).split(self.inner)
        else:  # two sums in one loop, and the product of both at its end
            gate, up = self.up(x, products, 0, self.inner), self.up(x, products, self.inner)
        return self.down(self.activation(gate) * up, products)


class Cache(nn.Module):
    """Keys and values of a layer: [kv_heads, length, head_dim]. `reductions` sum values along rows."""

    def __init__(self, shape, length, kind, like):
        super().__init__()
        self.kind = kind
        for name in ("keys", "values"):
            zeros = torch.zeros(shape.kv_heads, length, shape.head_dim, dtype=like.dtype, device=like.device)
            self.register_buffer(name, zeros)
        self.values = self.turned(self.values).contiguous()

    def turned(self, values):
        return values.transpose(1, 2) if self.kind == "reductions" else values

    def fill(self, keys, values):
        count = keys.shape[1]
        self.keys[:, :count] = keys
        self.turned(self.values)[:, :count] = values

    def append(self, position, k, v):
        """k and v: [kv_heads, head_dim], at `position` [1]."""
        self.keys.index_copy_(1, position, k[:, None].to(self.keys.dtype))
        v = self.turned(v[:, None]).to(self.values.dtype)
        self.values.index_copy_(2 if self.kind == "reductions" else 1, position, v)

    def attend(self, q, position, scale):
        """q: [heads, head_dim], f32; returns [heads * head_dim]."""
        kv_heads, length, head_dim = self.keys.shape
        steps = torch.arange(length, device=q.device)
        if self.kind == "flex":
            mixed = flex_attention(
                q.to(self.keys.dtype)[None, :, None],
                self.keys[None],
                self.values[None],
                score_mod=lambda score, b, h, i, step: torch.where(step <= position[0], score, -torch.inf),
                scale=scale,
                enable_gqa=True,
            )
            return mixed.reshape(-1).float()
        # The heads that share a KV head stand as its rows.
        q = q.view(kv_heads, -1, head_dim)
        if self.kind == "sdpa":
            mask = (steps <= position)[None, None, None].expand(1, 1, q.shape[1], length)
            mixed = F.scaled_dot_product_attention(
                q.to(self.keys.dtype)[None], self.keys[None], self.values[None], mask, scale=scale
            )
            return mixed.reshape(-1).float()
        scores = (q[:, :, None] * self.keys.float()[:, None]).sum(-1) * scale
        weights = torch.where(steps <= position, scores, -torch.inf).softmax(-1)
        return (weights[:, :, None] * self.values.float()[:, None]).sum(-1).reshape(-1)


class FusedModel(nn.Module):
    def __init__(self, weights):
        super().__init__()
        shape = self.shape = weights.shape
        self.layers = nn.ModuleList(FusedLayer(layer, shape) for layer in weights.layers)
        self.norm = Norm(weights.norm, shape)
        self.register_buffer("embedding", weights.embedding)
        self.register_buffer("positions", weights.positions)
        self.head = Linear(Affine(weights.head, None))


class Step(nn.Module):
    """One greedy token, batch 1: reads `token` at `position`, writes the next and moves on."""

    def __init__(self, model, length, products, attention):
        super().__init__()
        self.model, self.products = model, products
        shape, like = model.shape, model.embedding
        caches = (Cache(shape, length, attention, like) for _ in model.layers)
        self.caches = nn.ModuleList(caches)
        for name in ("token", "position"):
            self.register_buffer(name, torch.zeros(1, dtype=torch.int64, device=like.device))
        if shape.frequencies is not None:
            tables = rope_tables(shape.frequencies, torch.arange(length, device=like.device))
            self.register_buffer("cos", tables[0])
            self.register_buffer("sin", tables[1])

    def attention(self, layer, cache, x, scale):
        shape = self.model.shape
        q, k, v = (
            layer.qkv(x, self.products)
            .view(-1, shape.head_dim)
            .split([shape.heads, shape.kv_heads, shape.kv_heads])
        )
        if shape.frequencies is not None:
            cos, sin = self.cos[self.position], self.sin[self.position]
            q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        cache.append(self.position, k, v)
        return layer.o(cache.attend(q, self.position, scale), self.products)

    def forward(self):
        """Logits, f32 [vocab]."""
        model = self.model
        x = model.embedding[self.token][0].float()
        if model.positions is not None:
            x = x + model.positions[self.position][0].float()
        for layer, cache, scale in zip(model.layers, self.caches, model.shape.scales, strict=True):
            x = x + self.attention(layer, cache, layer.norm1(x), scale)
            x = x + layer.mlp(layer.norm2(x), self.products)
        logits = model.head(model.norm(x), self.products)
        self.token.copy_(logits.argmax(-1, keepdim=True))
        self.position.add_(1)
        return logits

    def start(self, tokens, position):
        """The next step reads tokens[position]."""
        self.token.copy_(tokens[position : position + 1])
        self.position.fill_(position)


class Peer:
    """The model of one checkpoint, and what it must compute."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.dtype = torch.float32 if arguments.device == "cpu" else torch.bfloat16
        generator = torch.Generator().manual_seed(1)
        count, vocab = max(arguments.positions) + CHECKED, read_config(arguments.model)["vocab_size"]
        self.tokens = torch.randint(0, vocab, (count,), generator=generator).to(arguments.device)
        # The model in fp32 takes the most memory: it goes before the others come.
        plain = self.plain(torch.float32)
        self.expected = {p: self.forward(plain, p)[0] for p in arguments.positions}
        del plain
        plain = self.plain(self.dtype)
        self.noise, self.caches = {}, {}
        for position in arguments.positions:
            logits, cache = self.forward(plain, position)
            self.noise[position] = harness.relative_error(logits, self.expected[position])
            self.caches[position] = [(k[:, :position], v[:, :position]) for k, v in cache]
        self.model = FusedModel(plain.weights)

    def plain(self, dtype):
        return PlainModel(read_weights(self.arguments.model, dtype, self.arguments.device))

    def forward(self, plain, position):
        """Logits of the tokens checked at a position, and the keys and values of all before."""
        return plain.forward(self.tokens[: position + CHECKED], CHECKED)

    def step(self, position, form):
        length = position + max(self.arguments.steps, CHECKED) + harness.WARM_UP
        step = Step(self.model, -(-length // CACHE_STEP) * CACHE_STEP, **form)
        for cache, (keys, values) in zip(step.caches, self.caches[position], strict=True):
            cache.fill(keys, values)
        return step

    def check(self, step, run, position):
        """Raises where what runs computes something else than the plain model."""
        made = []
        for i in range(CHECKED):
            step.start(self.tokens, position + i)
            made.append(run().clone())
            if int(step.token) != int(made[-1].argmax()) or int(step.position) != position + i + 1:
                raise RuntimeError(
                    f"at position {position + i} the step takes another token than the likeliest"
                )
        error = harness.relative_error(torch.stack(made), self.expected[position])
        allowed = max(FACTOR * self.noise[position], 1e-4)
        if not error <= allowed:
            raise RuntimeError(
                f"wrong logits at position {position}: error {error:.2e} of their rms, allowed {allowed:.2e}"
            )

    @torch.no_grad()
    def build(self, position, variant):
        step = self.step(position, variant.form)
        step.start(self.tokens, position)
        run = harness.prepare(step.forward, variant)
        self.check(step, run, position)

        @torch.no_grad()
        def tokens():
            for _ in range(self.arguments.steps):
                run()

        def measure():
            step.start(self.tokens, position)
            return harness.milliseconds(tokens) / self.arguments.steps

        return measure


def main():
    arguments = harness.argument_parser(__doc__, VARIANTS).parse_args()
    harness.set_up(arguments)
    bench = Bench(arguments, f"torch {torch.__version__}")
    peer = Peer(arguments)
    variants = harness.chosen(VARIANTS, arguments)
    works = (
        Work(f"decode at position {p}", "decode", variants, partial(peer.build, p))
        for p in arguments.positions
    )
    bench.run(list(works))


if __name__ == "__main__":
    main()
