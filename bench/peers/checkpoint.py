"""Reads a Llama or GPT-2 checkpoint folder into the few tensors of a decoder, with torch alone.

Linear weights come as [out, in], whatever the family stores, so that one model's code serves both families.
"""

import json
import math
import mmap
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I32": torch.int32}
ACTIVATIONS = {
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu_new": partial(F.gelu, approximate="tanh"),
    "gelu_pytorch_tanh": partial(F.gelu, approximate="tanh"),
}


class Affine(NamedTuple):
    weight: Tensor  # [out, in]; of a norm: [hidden]
    bias: Tensor | None


@dataclass
class Layer:
    norm1: Affine
    q: Affine
    k: Affine
    v: Affine
    o: Affine
    norm2: Affine
    gate: Affine | None  # None: an MLP without a gate
    up: Affine
    down: Affine


@dataclass
class Shape:
    vocab: int
    heads: int
    kv_heads: int
    head_dim: int
    limit: int  # positions
    epsilon: float
    is_rms: bool  # or LayerNorm
    activation: object
    scales: list[float]  # scales of attention's scores, by layer
    frequencies: Tensor | None  # RoPE's frequencies, f32 [head_dim / 2]; None: learned positions


@dataclass
class Weights:
    shape: Shape
    embedding: Tensor  # [vocab, hidden]
    positions: Tensor | None  # [limit, hidden]
    layers: list[Layer]
    norm: Affine
    head: Tensor  # [vocab, hidden]


class Tensors:
    """The tensors of a folder by name, as they lie in its safetensors files."""

    def __init__(self, folder):
        index = folder / "model.safetensors.index.json"
        names = ["model.safetensors"]
        if index.exists():
            names = sorted(set(json.loads(index.read_text())["weight_map"].values()))
        self.found = {}
        for name in names:
            self.found |= read_file(folder / name)

    def take(self, name, required=True):
        if required and name not in self.found:
            raise KeyError(f"the checkpoint has no tensor {name}; it has {sorted(self.found)[:8]}, ...")
        return self.found.get(name)


def read_file(path):
    """name -> tensor; the tensors are views of the mapped file."""
    with path.open("rb") as file:
        # A private mapping: torch asks for memory that may be written.
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, count = 8 + length + entry["data_offsets"][0], math.prod(entry["shape"])
        flat = torch.frombuffer(data, dtype=DTYPES[entry["dtype"]], count=count, offset=begin)
        tensors[name] = flat.view(entry["shape"])
    return tensors


def read_config(folder):
    return json.loads((Path(folder) / "config.json").read_text())


class UnsupportedError(ValueError):
    """A checkpoint that the peers' own models are not written for."""


def rope_frequencies(config, head_dim):
    """As transformers computes them, for the plain and the llama3 kind."""
    rope = config.get("rope_parameters") or {
        "rope_theta": config.get("rope_theta", 10000.0),
        **(config.get("rope_scaling") or {}),
    }
    exponents = torch.arange(0, head_dim, 2, dtype=torch.int64).float() / head_dim
    plain = 1.0 / rope.get("rope_theta", 10000.0) ** exponents
    kind = rope.get("rope_type", "default")
    if kind == "default":
        return plain
    if kind != "llama3":
        raise UnsupportedError(f"rope_type is {kind}; known are default and llama3")
    # Long waves are slowed down by the factor, short ones kept, those between blended.
    low, high, old = (
        rope[k] for k in ("low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
    )
    turns = old * plain / (2 * math.pi)
    kept = ((turns - low) / (high - low)).clamp(0, 1)
    return (1 - kept) * plain / rope["factor"] + kept * plain


def llama_weights(config, tensor):
    heads, layers = config["num_attention_heads"], config["num_hidden_layers"]
    head_dim = config.get("head_dim") or config["hidden_size"] // heads
    shape = Shape(
        vocab=config["vocab_size"],
        heads=heads,
        kv_heads=config.get("num_key_value_heads") or heads,
        head_dim=head_dim,
        limit=config["max_position_embeddings"],
        epsilon=config["rms_norm_eps"],
        is_rms=True,
        activation=ACTIVATIONS[config["hidden_act"]],
        scales=[head_dim**-0.5] * layers,
        frequencies=rope_frequencies(config, head_dim),
    )

    def affine(name):
        return Affine(tensor(name + ".weight"), tensor(name + ".bias", required=False))

    def layer(i):
        norms = ("input_layernorm", "post_attention_layernorm")
        norm1, norm2 = (affine(f"model.layers.{i}.{name}") for name in norms)
        q, k, v, o = (affine(f"model.layers.{i}.self_attn.{name}_proj") for name in "qkvo")
        mlp = (affine(f"model.layers.{i}.mlp.{name}_proj") for name in ("gate", "up", "down"))
        return Layer(norm1, q, k, v, o, norm2, *mlp)

    embedding = tensor("model.embed_tokens.weight")
    head = embedding if config.get("tie_word_embeddings") else tensor("lm_head.weight")
    stack = [layer(i) for i in range(layers)]
    return Weights(shape, embedding, None, stack, affine("model.norm"), head)


def gpt2_weights(config, tensor):
    heads, hidden, layers = config["n_head"], config["n_embd"], config["n_layer"]
    scale = (hidden // heads) ** -0.5 if config.get("scale_attn_weights", True) else 1.0
    by_layer = config.get("scale_attn_by_inverse_layer_idx", False)
    shape = Shape(
        vocab=config["vocab_size"],
        heads=heads,
        kv_heads=heads,
        head_dim=hidden // heads,
        limit=config["n_positions"],
        epsilon=config["layer_norm_epsilon"],
        is_rms=False,
        activation=ACTIVATIONS[config["activation_function"]],
        scales=[scale / (i + 1 if by_layer else 1) for i in range(layers)],
        frequencies=None,
    )

    def norm(name):
        return Affine(*(tensor(f"transformer.{name}.{part}") for part in ("weight", "bias")))

    def linear(name):
        stored = norm(name)  # [in, out]
        return Affine(stored.weight.t().contiguous(), stored.bias)

    def layer(i):
        qkv = linear(f"h.{i}.attn.c_attn")
        q, k, v = (Affine(*parts) for parts in zip(qkv.weight.chunk(3), qkv.bias.chunk(3), strict=True))
        o, up, down = (linear(f"h.{i}.{name}") for name in ("attn.c_proj", "mlp.c_fc", "mlp.c_proj"))
        return Layer(norm(f"h.{i}.ln_1"), q, k, v, o, norm(f"h.{i}.ln_2"), None, up, down)

    embedding, positions = tensor("transformer.wte.weight"), tensor("transformer.wpe.weight")
    head = embedding if config.get("tie_word_embeddings", True) else tensor("lm_head.weight")
    return Weights(shape, embedding, positions, [layer(i) for i in range(layers)], norm("ln_f"), head)


FAMILIES = {"llama": llama_weights, "gpt2": gpt2_weights}


def read_weights(folder, dtype, device):
    folder = Path(folder)
    config = read_config(folder)
    family = config["model_type"]
    if family not in FAMILIES:
        raise UnsupportedError(f"{folder.name} is a {family}; known are {', '.join(FAMILIES)}")
    tensors = Tensors(folder)

    def tensor(name, required=True):
        found = tensors.take(name, required)
        # Moved first: torch would convert on the host.
        return None if found is None else found.to(device).to(dtype)

    return FAMILIES[family](config, tensor)
