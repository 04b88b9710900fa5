"""Writes GGUF files of small models with gguf-py: names, keys and order of rows as llama.cpp has them."""

import re

import gguf
import numpy
import torch

# Bytes of a block's scales in f16, which random bytes would make huge or no number.
_HALVES = {
    "Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,), "IQ4_NL": (0,), "MXFP4": (),
    "Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,), "IQ4_XS": (0,),
    "IQ1_S": (0,), "IQ1_M": (), "IQ2_XXS": (0,), "IQ2_XS": (0,), "IQ2_S": (0,), "IQ3_XXS": (0,),
    "IQ3_S": (0,),
}  # fmt: skip
BLOCKS = tuple(_HALVES)
# The mean size of a code times its scale inside the block.
_SIZES = {
    "Q8_0": 64,
    "IQ4_NL": 64,
    "Q2_K": 8,
    "Q3_K": 32,
    "Q4_K": 256,
    "Q5_K": 512,
    "Q6_K": 1024,
    "IQ4_XS": 1024,
    "IQ2_XXS": 64,
    "IQ2_XS": 64,
    "IQ2_S": 64,
    "IQ3_XXS": 128,
    "IQ3_S": 128,
}

_NAMES = (
    (r"model\.embed_tokens", "token_embd"), (r"model\.norm", "output_norm"), (r"lm_head", "output"),
    (r"model\.layers\.(\d+)\.", r"blk.\1."), (r"self_attn\.([qkv])_proj", r"attn_\1"),
    (r"self_attn\.qkv_proj", "attn_qkv"), (r"self_attn\.o_proj", "attn_output"),
    (r"self_attn\.([qk])_norm", r"attn_\1_norm"), (r"mlp\.gate_up_proj", "ffn_up"),
    (r"mlp\.shared_expert_gate", "ffn_gate_inp_shexp"),
    (r"mlp\.shared_expert\.(gate|up|down)_proj", r"ffn_\1_shexp"),
    (r"mlp\.gate\.", "ffn_gate_inp."), (r"mlp\.(gate|up|down)_proj", r"ffn_\1"),
    (r"input_layernorm", "attn_norm"),
)  # fmt: skip
_NORMS = {
    "llama": ((r"post_attention_layernorm", "ffn_norm"),),
    "gemma2": ((r"post_attention_layernorm", "post_attention_norm"),
               (r"pre_feedforward_layernorm", "ffn_norm"),
               (r"post_feedforward_layernorm", "post_ffw_norm")),
    "olmo2": ((r"post_attention_layernorm", "post_attention_norm"),
              (r"post_feedforward_layernorm", "post_ffw_norm")),
}  # fmt: skip


def random_blocks(kind, rows, cols, rng):
    """Blocks of a type with every code, whose values are of the size of weights."""
    elems, width = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
    blocks = rng.integers(0, 256, (rows * cols // elems, width), dtype=numpy.uint8)
    for at in _HALVES[kind]:
        scales = rng.normal(0, 0.2 / _SIZES.get(kind, 8), len(blocks)).astype(numpy.float16)
        blocks[:, at : at + 2] = scales.view(numpy.uint8).reshape(-1, 2)
    if kind == "IQ1_M":  # the scale of a block is in the high bits of four words
        scale = rng.normal(0, 0.02, len(blocks)).astype(numpy.float16).view(numpy.uint16)
        for i in range(4):
            high = (scale >> (4 * i) & 15) << 4
            blocks[:, 49 + 2 * i] = blocks[:, 49 + 2 * i] & 15 | high.astype(numpy.uint8)
    if kind == "MXFP4":
        blocks[:, 0] = rng.integers(121, 126, len(blocks))
    return blocks.reshape(rows, -1)


def dequantised(blocks, kind):
    return gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType[kind])


def turned(tensor, heads):
    """Rows of a head in the order of llama.cpp's rotary embeddings: first and second half in turn."""
    return (
        tensor.reshape(heads, 2, tensor.shape[0] // heads // 2, *tensor.shape[1:])
        .swapaxes(1, 2)
        .reshape(tensor.shape)
    )


def name_of(name, norms):
    for pattern, put in _NAMES + _NORMS[norms]:
        name = re.sub(pattern, put, name)
    return name


def add_config(writer, config, ints, floats):
    get = lambda name, otherwise=None: getattr(config, name, None) or otherwise  # noqa: E731
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    head = get("head_dim", config.hidden_size // config.num_attention_heads)
    writer.add_key_length(head)
    writer.add_value_length(head)
    writer.add_rope_dimension_count(head)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    rope = config.rope_parameters
    writer.add_rope_freq_base(rope.get("full_attention", rope)["rope_theta"])
    if get("num_experts") or get("num_local_experts"):
        writer.add_expert_count(get("num_experts", get("num_local_experts")))
        writer.add_expert_used_count(config.num_experts_per_tok)
        if get("moe_intermediate_size"):
            writer.add_expert_feed_forward_length(config.moe_intermediate_size)
    if get("sliding_window"):
        writer.add_sliding_window(config.sliding_window)
    if get("attn_logit_softcapping"):
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
    if get("final_logit_softcapping"):
        writer.add_final_logit_softcapping(config.final_logit_softcapping)
    for key, value in ints.items():
        writer.add_uint32(f"{writer.arch}.{key}", value)
    for key, value in floats.items():
        writer.add_float32(f"{writer.arch}.{key}", value)


def add_words(writer, vocab):
    """A vocabulary of bytes, and names for what is left of `vocab` tokens."""
    letters = sorted(
        [*range(33, 127), *range(161, 173), *range(174, 256)], key=lambda byte: chr(byte) not in "th"
    )
    others = [byte for byte in range(256) if byte not in letters]
    tokens = ([chr(byte) for byte in letters] + [chr(256 + i) for i in range(len(others))])[: vocab - 1]
    tokens += [f"<{i}>" for i in range(len(tokens), vocab - 1)] + ["th"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * vocab)
    writer.add_token_merges(["t h"])
    writer.add_eos_token_id(2)


def write(
    path,
    model,
    architecture,
    kind_of=lambda _: "F32",
    norms="llama",
    words=add_words,
    ints=(),
    floats=(),
    tensors=(),
    **options,
):
    """Writes `model`, its matrices as random blocks of kind_of(name in the file); returns all values."""
    rng = numpy.random.default_rng(0)
    config, writer = model.config, gguf.GGUFWriter(path, architecture, **options)
    add_config(writer, config, dict(ints), dict(floats))
    words(writer, config.vocab_size)
    for name, data in dict(tensors).items():
        writer.add_tensor(name, data)
    state, values = model.state_dict(), {}
    turns = architecture in ("llama", "granite", "smollm3")
    if config.tie_word_embeddings:
        state.pop("lm_head.weight")

    def add(name, tensor, heads, values_of):
        kind = kind_of(name) if tensor.ndim > 1 and "gate_inp" not in name else "F32"
        if kind in _HALVES:
            blocks = random_blocks(kind, tensor.size // tensor.shape[-1], tensor.shape[-1], rng)
            made = dequantised(blocks, kind).reshape(tensor.shape)
            if heads:
                inverse = numpy.argsort(turned(numpy.arange(len(made)), heads))
                made = made[inverse]
            values_of(torch.from_numpy(made).to(torch.bfloat16))
            writer.add_tensor(
                name, blocks.reshape(*tensor.shape[:-1], -1), raw_dtype=gguf.GGMLQuantizationType[kind]
            )
            return
        values_of(
            torch.from_numpy(tensor).to(
                {"F16": torch.float16, "BF16": torch.bfloat16}.get(kind, torch.float32)
            )
        )
        stored = turned(tensor, heads) if heads else tensor
        if architecture.startswith("gemma") and name.endswith("norm.weight"):
            stored = stored + 1
        data = gguf.quants.quantize(stored, gguf.GGMLQuantizationType[kind])
        writer.add_tensor(name, data, raw_dtype=gguf.GGMLQuantizationType[kind])

    for name, tensor in state.items():
        array = tensor.detach().float().numpy()
        stored = name_of(name, norms)
        if "experts." in name:  # [experts, rows, columns]; gate and up in one
            layer = re.search(r"layers\.(\d+)", name)[1]
            parts = {"gate": array[:, : array.shape[1] // 2], "up": array[:, array.shape[1] // 2 :]}
            if "down" in name:
                parts = {"down": array}
            made = []
            for part, data in parts.items():
                add(f"blk.{layer}.ffn_{part}_exps.weight", numpy.ascontiguousarray(data), 0, made.append)
            values[name] = torch.cat(made, 1)
            continue
        if "shared_expert_gate" in name:
            array = array[0]
        heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}.get(
            stored.split(".")[2] if stored.startswith("blk.") else "", 0
        )
        add(stored, array, heads if turns else 0, lambda made, name=name: values.__setitem__(name, made))
        values[name] = values[name].reshape(tensor.shape)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return values
