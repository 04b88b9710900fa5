"""Writes a checkpoint with random weights in the shape of a known model, for benchmarks.

    .venv/bin/python scripts/make_checkpoint.py llama-3.2-1b /tmp/llama-1b [--dtype bfloat16] [--shard-gb 5]
    .venv/bin/python scripts/make_checkpoint.py qwen3-30b-a3b /tmp/qwen3-moe --layers 4
    .venv/bin/python scripts/make_checkpoint.py --like models/storyteller /tmp/random-storyteller

The shapes small-FAMILY are no known model's: a few hundred million parameters, to compare families on a CPU.

Tensors are made and written a piece at a time: memory stays small whatever the size. (Families of
goldens/family_cases.py are made by transformers instead, in memory.) transformers loads the folder.
Its tokenizer knows the 256 bytes, and names that mean nothing for the rest of the vocabulary.
"""

import argparse
import json
import math
import sys
import time
import zlib
from pathlib import Path

import torch

sys.path.append(str(Path(__file__).resolve().parent / "goldens"))

from family_cases import FAMILIES as CASES
from family_cases import config_of

PIECE = 1 << 24  # elements made at once
TYPE_NAMES = {"bfloat16": "BF16", "float16": "F16", "float32": "F32"}
LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}


YARN = {
    "rope_type": "yarn",
    "factor": 40.0,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "original_max_position_embeddings": 4096,
}


def rope(theta):
    return {"rope_type": "default", "rope_theta": theta}


def llama(hidden, intermediate, layers, heads, kv_heads, **more):
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": hidden,
        "intermediate_size": intermediate,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "rms_norm_eps": 1e-5,
        "hidden_act": "silu",
    }
    return config | more


def llama3(*sizes, rope_factor, tied=True):
    more = {"vocab_size": 128256, "max_position_embeddings": 131072, "tie_word_embeddings": tied}
    ids = {"bos_token_id": 128000, "eos_token_id": 128001}
    return llama(*sizes, **more, **ids, rope_parameters=LLAMA3_ROPE | {"factor": rope_factor})


def descendant(model_type, architecture, *sizes, **more):
    return llama(*sizes, **more) | {"model_type": model_type, "architectures": [f"{architecture}ForCausalLM"]}


def qwen(number, *sizes, tied, **more):
    own = {"vocab_size": 151936, "eos_token_id": 151645, "max_position_embeddings": 32768}
    own |= {"rope_parameters": rope(1e6), "tie_word_embeddings": tied}
    name = f"Qwen{number}"
    return descendant(name.lower(), name, *sizes, **(own | more))


def mixtral(*sizes, experts, **more):
    mixture = {"num_local_experts": experts, "num_experts_per_tok": 2, "sliding_window": None}
    own = {"max_position_embeddings": 32768, "tie_word_embeddings": False}
    return descendant("mixtral", "Mixtral", *sizes, **(own | mixture | more))


def qwen3_moe(*sizes, experts, taken, inner, **more):
    mixture = {"num_experts": experts, "num_experts_per_tok": taken, "moe_intermediate_size": inner}
    mixture |= {"decoder_sparse_step": 1, "mlp_only_layers": [], "norm_topk_prob": True}
    own = {"max_position_embeddings": 40960, "rope_parameters": rope(1e6), "tie_word_embeddings": False}
    return descendant("qwen3_moe", "Qwen3Moe", *sizes, **(own | mixture | more))


def deepseek(model_type, hidden, intermediate, layers, heads, latent, experts, **more):
    """`latent`: its size, those of a head: plain, rotated, value. `experts`: routed, taken, size, shared."""
    latent = zip(("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"), latent, strict=True)
    keys = ("n_routed_experts", "num_experts_per_tok", "moe_intermediate_size", "n_shared_experts")
    own = {"q_lora_rank": None, "first_k_dense_replace": 1, "topk_method": "greedy", "norm_topk_prob": False}
    own |= {"rms_norm_eps": 1e-6, "rope_parameters": rope(1e4), "tie_word_embeddings": False}
    own |= dict(latent) | dict(zip(keys, experts, strict=True)) | more
    name = model_type.replace("deepseek_v", "DeepseekV")
    return descendant(model_type, name, hidden, intermediate, layers, heads, heads, **own)


def gemma(model_type, architecture, *sizes, **more):
    ids = {"bos_token_id": 2, "eos_token_id": 1, "pad_token_id": 0, "tie_word_embeddings": True}
    heads = {"head_dim": 256, "query_pre_attn_scalar": 256, "hidden_activation": "gelu_pytorch_tanh"}
    return descendant(model_type, architecture, *sizes, **ids, **heads, **more)


def gpt2(hidden, layers, heads):
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "vocab_size": 50257,
        "n_positions": 1024,
        "n_embd": hidden,
        "n_layer": layers,
        "n_head": heads,
        "layer_norm_epsilon": 1e-5,
        "activation_function": "gelu_new",
        "bos_token_id": 50256,
        "eos_token_id": 50256,
    }


MODELS = {
    "llama-3.2-1b": llama3(2048, 8192, 16, 32, 8, rope_factor=32.0),
    "llama-3.2-3b": llama3(3072, 8192, 28, 24, 8, rope_factor=32.0),
    "llama-3.1-8b": llama3(4096, 14336, 32, 32, 8, rope_factor=8.0, tied=False),
    "llama-2-7b": llama(4096, 11008, 32, 32, 32, vocab_size=32000, max_position_embeddings=4096),
    "mistral-7b": descendant(
        "mistral",
        "Mistral",
        *(4096, 14336, 32, 32, 8),
        vocab_size=32000,
        max_position_embeddings=32768,
        sliding_window=4096,
    ),
    "qwen2.5-0.5b": qwen(2, 896, 4864, 24, 14, 2, tied=True),
    "qwen2.5-7b": qwen(2, 3584, 18944, 28, 28, 4, tied=False, vocab_size=152064),
    "qwen3-0.6b": qwen(3, 1024, 3072, 28, 16, 8, tied=True, head_dim=128),
    "qwen3-8b": qwen(3, 4096, 12288, 36, 32, 8, tied=False, head_dim=128),
    "gemma-2-2b": gemma(
        "gemma2",
        "Gemma2",
        *(2304, 9216, 26, 8, 4),
        vocab_size=256000,
        max_position_embeddings=8192,
        sliding_window=4096,
    ),
    "gemma-3-1b": gemma(
        "gemma3_text",
        "Gemma3",
        *(1152, 6912, 26, 4, 1),
        vocab_size=262144,
        max_position_embeddings=32768,
        sliding_window=512,
    ),
    "mixtral-8x7b": mixtral(4096, 14336, 32, 32, 8, experts=8, vocab_size=32000, rope_parameters=rope(1e6)),
    "qwen3-30b-a3b": qwen3_moe(
        *(2048, 6144, 48, 32, 4), experts=128, taken=8, inner=768, vocab_size=151936, head_dim=128
    ),
    "deepseek-v2-lite": deepseek(
        "deepseek_v2",
        *(2048, 10944, 27, 16),
        latent=(512, 128, 64, 128),
        experts=(64, 6, 1408, 2),
        vocab_size=102400,
        max_position_embeddings=163840,
        rope_parameters=rope(1e4) | YARN | {"mscale": 0.707, "mscale_all_dim": 0.707},
    ),
    "gpt2": gpt2(768, 12, 12),
    "gpt2-medium": gpt2(1024, 24, 16),
    "gpt2-xl": gpt2(1600, 48, 25),
}


# Hidden size, MLP, layers, heads, key heads; enough layers for weights that no cache holds.
SMALL = (1024, 2816, 12, 16, 4)
SMALL_MIXTURE = (1024, 2816, 8, 16)
SMALL_VOCAB = {"vocab_size": 32768, "max_position_embeddings": 8192}
SMALL_LATENT = {"latent": (256, 64, 32, 64), "experts": (32, 4, 256, 2)}
SMALL_GROUPS = {"topk_method": "noaux_tc", "scoring_func": "sigmoid", "norm_topk_prob": True}
SMALL_GROUPS |= {"n_group": 4, "topk_group": 2, "routed_scaling_factor": 2.5}
MODELS |= {
    "small-llama": llama(*SMALL, **SMALL_VOCAB, rope_parameters=rope(5e5)),
    "small-mistral": descendant("mistral", "Mistral", *SMALL, **SMALL_VOCAB, sliding_window=4096),
    "small-qwen2": qwen(2, *SMALL, tied=False, **SMALL_VOCAB, eos_token_id=None),
    "small-qwen3": qwen(3, *SMALL, tied=False, **SMALL_VOCAB, eos_token_id=None, head_dim=64),
    "small-gemma2": gemma("gemma2", "Gemma2", *SMALL[:3], 4, 2, **SMALL_VOCAB, sliding_window=4096),
    "small-gemma3": gemma("gemma3_text", "Gemma3", *SMALL[:3], 4, 1, **SMALL_VOCAB, sliding_window=512),
    "small-gpt2": gpt2(1024, 12, 16),
    "small-mixtral": mixtral(1024, 1024, 8, 16, 4, experts=8, **SMALL_VOCAB, rope_parameters=rope(1e6)),
    "small-qwen3_moe": qwen3_moe(
        *SMALL_MIXTURE, 4, experts=32, taken=4, inner=256, **SMALL_VOCAB, head_dim=64
    ),
    "small-deepseek_v2": deepseek("deepseek_v2", *SMALL_MIXTURE, **SMALL_LATENT, **SMALL_VOCAB),
    "small-deepseek_v3": deepseek(
        "deepseek_v3", *SMALL_MIXTURE, **SMALL_LATENT, **SMALL_VOCAB, **SMALL_GROUPS, q_lora_rank=384
    ),
}


# Sizes of mixtures, and windows, that fit SMALL.
SMALL_EXPERTS = {"num_experts_per_tok": 4, "moe_intermediate_size": 256}
SMALL_CASES = {
    "qwen2_moe": SMALL_EXPERTS
    | {"num_experts": 32, "shared_expert_intermediate_size": 512, "decoder_sparse_step": 1},
    "granitemoe": {"num_local_experts": 32, "num_experts_per_tok": 4, "intermediate_size": 256},
    "granitemoehybrid": {
        "num_local_experts": 32,
        "num_experts_per_tok": 4,
        "intermediate_size": 256,
        "shared_intermediate_size": 512,
    },
    "minimax_m2": {"num_local_experts": 32, "num_experts_per_tok": 4, "intermediate_size": 256},
    "olmoe": {"num_experts": 32, "num_experts_per_tok": 4, "intermediate_size": 256},
    "glm4_moe": SMALL_EXPERTS | {"n_routed_experts": 32, "routed_scaling_factor": 1.0},
    "gpt_oss": {"num_local_experts": 32, "num_experts_per_tok": 4, "intermediate_size": 256},
    "dots1": SMALL_EXPERTS | {"n_routed_experts": 32, "routed_scaling_factor": 1.0},
    "exaone_moe": SMALL_EXPERTS | {"num_experts": 32, "routed_scaling_factor": 1.0},
    "ernie4_5_moe": {"moe_num_experts": 32, "moe_k": 4, "moe_intermediate_size": 256},
    "hunyuan_v1_moe": {"num_experts": 32, "moe_topk": 4, "intermediate_size": 256},
}


def small_case(name):
    """The shape SMALL of a family that family_cases describes."""
    keys = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
    sizes = dict(zip((*keys, "num_key_value_heads"), SMALL, strict=True)) | SMALL_VOCAB | {"head_dim": 64}
    family = CASES[name]
    config = config_of(family, sizes, lambda values: values[0]) | SMALL_CASES.get(name, {})
    config |= {"model_type": name, "architectures": [family.model + "ForCausalLM"], "eos_token_id": None}
    if config.get("sliding_window"):
        config["sliding_window"] = 512
    return config


MODELS |= {f"small-{name}": small_case(name) for name in CASES}


def linear(name, rows, columns, gain=1.0):
    """A projection whose output is `gain` times as large as its input."""
    return f"{name}.weight", (rows, columns), gain / math.sqrt(columns)


def attention_tensors(config, at, gain, norm):
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    head_dim = config.get("head_dim") or hidden // heads
    q, kv = heads * head_dim, config.get("num_key_value_heads", heads) * head_dim
    for name, rows in (("q", q), ("k", kv), ("v", kv)):
        yield linear(at + f"{name}_proj", rows, hidden)
        if config["model_type"] == "qwen2":
            yield at + f"{name}_proj.bias", (rows,), 0.02
    if config["model_type"] in ("qwen3", "qwen3_moe", "gemma3_text"):
        for name in ("q", "k"):
            yield at + f"{name}_norm.weight", (head_dim,), norm
    yield linear(at + "o_proj", hidden, q, gain)


def latent_attention_tensors(config, at, gain):
    hidden, heads, latent = (config[k] for k in ("hidden_size", "num_attention_heads", "kv_lora_rank"))
    plain, rotated, value = (config[k] for k in ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"))
    if rank := config.get("q_lora_rank"):
        yield linear(at + "q_a_proj", rank, hidden)
        yield at + "q_a_layernorm.weight", (rank,), None
        yield linear(at + "q_b_proj", heads * (plain + rotated), rank)
    else:
        yield linear(at + "q_proj", heads * (plain + rotated), hidden)
    yield linear(at + "kv_a_proj_with_mqa", latent + rotated, hidden)
    yield at + "kv_a_layernorm.weight", (latent,), None
    yield linear(at + "kv_b_proj", heads * (plain + value), latent)
    yield linear(at + "o_proj", hidden, heads * value, gain)


def mlp_tensors(at, hidden, inner, gain, names=("gate_proj", "up_proj", "down_proj")):
    gate, up, down = names
    yield linear(at + gate, inner, hidden)
    yield linear(at + up, inner, hidden)
    yield linear(at + down, hidden, inner, gain)


def experts_of(config, layer):
    """The number that a layer has; 0: an MLP of its own."""
    if "n_routed_experts" in config:
        return config["n_routed_experts"] if layer >= config.get("first_k_dense_replace", 0) else 0
    skipped = layer in config.get("mlp_only_layers", []) or (layer + 1) % config.get("decoder_sparse_step", 1)
    return 0 if skipped else config.get("num_local_experts") or config.get("num_experts", 0)


def mixture_tensors(config, at, count, gain):
    hidden = config["hidden_size"]
    inner = config.get("moe_intermediate_size") or config["intermediate_size"]
    if config["model_type"] == "mixtral":
        at, names = at + "block_sparse_moe.", ("w1", "w3", "w2")
    else:
        at, names = at + "mlp.", ("gate_proj", "up_proj", "down_proj")
    yield linear(at + "gate", count, hidden)
    if config["model_type"] == "deepseek_v3":
        yield at + "gate.e_score_correction_bias", (count,), 0.02
    for expert in range(count):
        yield from mlp_tensors(at + f"experts.{expert}.", hidden, inner, gain, names)
    if shared := config.get("n_shared_experts"):
        yield from mlp_tensors(at + "shared_experts.", hidden, shared * inner, gain)


def llama_tensors(config):
    """Name, shape and standard deviation of each tensor of a descendant of Llama; None stands for ones."""
    family = config["model_type"]
    norm = 0.0 if family.startswith("gemma") else None  # Gemma stores them less one
    hidden, inner, layers = (config[k] for k in ("hidden_size", "intermediate_size", "num_hidden_layers"))
    gain = 1 / math.sqrt(2 * layers)  # the sum of all layers' outputs keeps the residual's size
    yield linear("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(layers):
        layer = f"model.layers.{i}."
        yield layer + "input_layernorm.weight", (hidden,), norm
        if "kv_lora_rank" in config:
            yield from latent_attention_tensors(config, layer + "self_attn.", gain)
        else:
            yield from attention_tensors(config, layer + "self_attn.", gain, norm)
        yield layer + "post_attention_layernorm.weight", (hidden,), norm
        if family.startswith("gemma"):
            for place in ("pre", "post"):
                yield layer + f"{place}_feedforward_layernorm.weight", (hidden,), norm
        if count := experts_of(config, i):
            yield from mixture_tensors(config, layer, count, gain)
        else:
            yield from mlp_tensors(layer + "mlp.", hidden, inner, gain)
    yield "model.norm.weight", (hidden,), norm
    if not config.get("tie_word_embeddings", family.startswith("gemma")):
        yield linear("lm_head", config["vocab_size"], hidden)


def gpt2_tensors(config):
    hidden, layers = config["n_embd"], config["n_layer"]
    inner = config.get("n_inner") or 4 * hidden
    into_residual = 1 / math.sqrt(2 * layers)
    yield linear("transformer.wte", config["vocab_size"], hidden)
    yield "transformer.wpe.weight", (config["n_positions"], hidden), 0.1 / math.sqrt(hidden)
    for i in range(layers):
        layer = f"transformer.h.{i}."
        for name, fan_in, fan_out, gain in (
            ("attn.c_attn", hidden, 3 * hidden, 1.0),
            ("attn.c_proj", hidden, hidden, into_residual),
            ("mlp.c_fc", hidden, inner, 1.0),
            ("mlp.c_proj", inner, hidden, into_residual),
        ):
            yield layer + name + ".weight", (fan_in, fan_out), gain / math.sqrt(fan_in)
            yield layer + name + ".bias", (fan_out,), 0.02
        for name in ("ln_1", "ln_2"):
            yield layer + name + ".weight", (hidden,), None
            yield layer + name + ".bias", (hidden,), 0.02
    yield "transformer.ln_f.weight", (hidden,), None
    yield "transformer.ln_f.bias", (hidden,), 0.02
    if not config.get("tie_word_embeddings", True):
        yield linear("lm_head", config["vocab_size"], hidden)


DESCENDANTS = ("llama", "mistral", "qwen2", "qwen3", "gemma2", "gemma3_text")
MIXTURES = ("mixtral", "qwen3_moe", "deepseek_v2", "deepseek_v3")
FAMILIES = {"gpt2": gpt2_tensors} | dict.fromkeys((*DESCENDANTS, *MIXTURES), llama_tensors)


def pieces(name, shape, deviation, dtype, device):
    """The bytes of a tensor, a piece at a time; they depend on its name, its shape and the kind of device."""
    generator = torch.Generator(device).manual_seed(zlib.crc32(name.encode()))
    left = math.prod(shape)
    while left > 0:
        count = min(left, PIECE)
        if deviation is None:
            values = torch.ones(count)
        else:
            values = torch.randn(count, generator=generator, device=device) * deviation
        yield values.to(dtype).cpu().view(torch.uint8).numpy().tobytes()
        left -= count


def write_file(path, tensors, dtype_name, device):
    dtype = getattr(torch, dtype_name)
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, shape, _ in tensors:
        end = offset + math.prod(shape) * dtype.itemsize
        header[name] = {"dtype": TYPE_NAMES[dtype_name], "shape": list(shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    told = time.monotonic()
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name, shape, deviation in tensors:
            for piece in pieces(name, shape, deviation, dtype, device):
                file.write(piece)
                if time.monotonic() - told >= 2:
                    told = time.monotonic()
                    print(f"{path}: {file.tell() / offset:.0%}", file=sys.stderr, flush=True)


def split(tensors, limit, item_bytes):
    """Runs of tensors that take at most `limit` bytes each, where no single one is larger."""
    shards, used = [[]], 0
    for tensor in tensors:
        size = math.prod(tensor[1]) * item_bytes
        if shards[-1] and used + size > limit:
            shards.append([])
            used = 0
        shards[-1].append(tensor)
        used += size
    return shards


def write_weights(folder, tensors, dtype_name, shard_bytes, device):
    item_bytes = getattr(torch, dtype_name).itemsize
    shards = split(tensors, shard_bytes, item_bytes)
    if len(shards) == 1:
        write_file(folder / "model.safetensors", tensors, dtype_name, device)
        return
    weight_map = {}
    for number, shard in enumerate(shards, 1):
        file = f"model-{number:05}-of-{len(shards):05}.safetensors"
        write_file(folder / file, shard, dtype_name, device)
        weight_map |= {name: file for name, _, _ in shard}
    total = sum(math.prod(shape) for _, shape, _ in tensors) * item_bytes
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2))


def write_by_transformers(folder, config, dtype_name):
    """A model with the initial weights of its class; returns how many."""
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(zlib.crc32(config["model_type"].encode()))
    made = AutoConfig.for_model(**config)
    model = AutoModelForCausalLM.from_config(made, dtype=getattr(torch, dtype_name))
    model.save_pretrained(folder)
    return sum(weight.numel() for weight in model.parameters())


def byte_letters():
    """The printable letters that byte-level BPE writes for the 256 bytes."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [b for b in range(256) if b not in shown]
    return {b: chr(b) for b in shown} | {b: chr(256 + i) for i, b in enumerate(hidden)}


def write_tokenizer(folder, vocab_size):
    letters = byte_letters()
    vocab = {letters[b]: b for b in range(256)} | {f"Ġw{i}": i for i in range(256, vocab_size)}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    bpe = {"type": "BPE", "fuse_unk": False, "byte_fallback": False, "vocab": vocab, "merges": []}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
    }
    tokenizer |= {"pre_tokenizer": byte_level, "post_processor": None, "decoder": byte_level, "model": bpe}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False))
    # Taken as it is: a family's own class would make its own stages around the vocabulary.
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')


def cut(config, layers):
    """The configuration with its first layers only."""
    key = "n_layer" if "n_layer" in config else "num_hidden_layers"
    if not 1 <= layers <= config[key]:
        raise SystemExit(f"--layers is {layers}; the model has {config[key]}")
    kinds = {"layer_types": config["layer_types"][:layers]} if config.get("layer_types") else {}
    return config | {key: layers} | kinds


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "model", nargs="?", choices=MODELS, metavar="MODEL", help=f"whose shape it has: {', '.join(MODELS)}"
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--like", type=Path, metavar="FOLDER", help="take the shape from FOLDER/config.json")
    parser.add_argument("--dtype", choices=TYPE_NAMES, default="bfloat16")
    parser.add_argument("--layers", type=int, metavar="N", help="the first N layers alone")
    parser.add_argument("--device", default="cpu", help="draws the numbers; cuda is faster, and draws others")
    parser.add_argument("--shard-gb", type=float, default=math.inf, help="the largest size of one file")
    arguments = parser.parse_args()
    if (arguments.model is None) == (arguments.like is None):
        parser.error("give either a model's name or --like")
    config = (
        json.loads((arguments.like / "config.json").read_text())
        if arguments.like
        else MODELS[arguments.model]
    )
    config = {key: value for key, value in config.items() if key != "torch_dtype"} | {
        "dtype": arguments.dtype
    }

    if arguments.layers is not None:
        config = cut(config, arguments.layers)

    arguments.folder.mkdir(parents=True, exist_ok=True)
    write_tokenizer(arguments.folder, config["vocab_size"])
    if config["model_type"] in FAMILIES:
        tensors = list(FAMILIES[config["model_type"]](config))
        shard_bytes = arguments.shard_gb * 1e9
        write_weights(arguments.folder, tensors, arguments.dtype, shard_bytes, arguments.device)
        (arguments.folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
        count = sum(math.prod(shape) for _, shape, _ in tensors)
    else:
        count = write_by_transformers(arguments.folder, config, arguments.dtype)
    print(f"{arguments.folder}: {count / 1e6:.1f} M parameters in {arguments.dtype}")


if __name__ == "__main__":
    main()
