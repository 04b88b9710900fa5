"""The goldens of the families that family_cases describes, as data."""

import torch
from family_cases import MSCALES, longrope

# Sizes of goldens of families whose matrices would make large files.
SMALL = {
    "hidden_size": 24,
    "head_dim": 8,
    "num_hidden_layers": 2,
}

# Name of the golden: its family, its type, and what differs from the first choices.
GOLDENS = {
    "gemma-tiny": ("gemma", torch.float32, {}),
    "gemma-bf16": ("gemma", torch.bfloat16, {"attention_bias": True}),
    "phi3-tiny": ("phi3", torch.float32, {}),
    "phi3-longrope": (
        "phi3",
        torch.bfloat16,
        {"rope_parameters": longrope(6), "sliding_window": None, "original_max_position_embeddings": 128},
    ),
    "phi3-long": (
        "phi3",
        torch.float32,
        {
            "rope_parameters": longrope(6) | {"original_max_position_embeddings": 10},
            "sliding_window": None,
            "original_max_position_embeddings": 10,
        },
    ),
    "qwen2_moe-tiny": ("qwen2_moe", torch.float32, {}),
    "qwen3_next-tiny": ("qwen3_next", torch.float32, {}),
    "qwen3_5-tiny": ("qwen3_5", torch.float32, {}),
    "qwen3_5-bf16": ("qwen3_5", torch.bfloat16, {"full_attention_interval": 3}),
    "qwen3_5_moe-tiny": ("qwen3_5_moe", torch.float32, {}),
    "lfm2-tiny": ("lfm2", torch.float32, {}),
    "lfm2_moe-tiny": ("lfm2_moe", torch.float32, {}),
    "arcee-tiny": ("arcee", torch.float32, {}),
    "nemotron-tiny": ("nemotron", torch.float32, {}),
    "nemotron_h-tiny": (
        "nemotron_h",
        torch.float32,
        SMALL | {"layer_types": ["linear_attention", "full_attention", "moe", "mlp"], "mamba_head_dim": 8},
    ),
    "smollm3-tiny": ("smollm3", torch.float32, {}),
    "granite-tiny": ("granite", torch.float32, {}),
    "granite-bf16": ("granite", torch.bfloat16, {"residual_multiplier": 0.22}),
    "granitemoe-tiny": ("granitemoe", torch.float32, {}),
    "olmo2-tiny": ("olmo2", torch.float32, {}),
    "olmo3-bf16": ("olmo3", torch.bfloat16, {"num_hidden_layers": 4}),
    "olmoe-tiny": ("olmoe", torch.float32, {}),
    "glm4-tiny": ("glm4", torch.float32, {}),
    "glm4_moe-tiny": ("glm4_moe", torch.float32, {}),
    "cohere-tiny": ("cohere", torch.float32, {}),
    "cohere2-bf16": ("cohere2", torch.bfloat16, {}),
    "starcoder2-tiny": ("starcoder2", torch.float32, {}),
    "stablelm-tiny": ("stablelm", torch.float32, {}),
    "stablelm-bf16": ("stablelm", torch.bfloat16, {"use_parallel_residual": False, "qk_layernorm": False}),
    "gpt_neox-tiny": ("gpt_neox", torch.float32, {}),
    "phi-bf16": ("phi", torch.bfloat16, {"num_key_value_heads": 4}),
    "falcon-tiny": ("falcon", torch.float32, {}),
    "falcon-7b": (
        "falcon",
        torch.bfloat16,
        {
            "new_decoder_architecture": False,
            "multi_query": True,
            "num_ln_in_parallel_attn": None,
            "bias": False,
        },
    ),
    "ministral3-tiny": ("ministral3", torch.float32, {}),
    "seed_oss-tiny": ("seed_oss", torch.float32, {}),
    "exaone4-tiny": ("exaone4", torch.float32, {}),
    "hunyuan_dense-tiny": ("hunyuan_v1_dense", torch.float32, {}),
    "gpt_oss-tiny": ("gpt_oss", torch.float32, {}),
    "olmo-tiny": ("olmo", torch.float32, {}),
    "olmoe-clip": ("olmoe", torch.float32, {"clip_qkv": 0.7}),
    "phi-qk_layernorm": ("phi", torch.float32, {"qk_layernorm": True}),
    "falcon-alibi": (
        "falcon",
        torch.float32,
        {
            "alibi": True,
            "new_decoder_architecture": False,
            "multi_query": False,
            "parallel_attn": False,
            "num_ln_in_parallel_attn": None,
            "num_attention_heads": 5,
            "num_kv_heads": 5,
            "hidden_size": 80,
        },
    ),
    "bamba-tiny": ("bamba", torch.float32, {"hidden_size": 32, "intermediate_size": 29}),
    "falcon_h1-tiny": ("falcon_h1", torch.float32, SMALL | {"intermediate_size": 29}),
    "granitemoehybrid-mamba": ("granitemoehybrid", torch.float32, {"hidden_size": 32}),
    "granitemoehybrid-tiny": (
        "granitemoehybrid",
        torch.float32,
        {"mamba_n_heads": 1, "layer_types": ["full_attention"] * 3},
    ),
    "granitemoehybrid-dense": (
        "granitemoehybrid",
        torch.bfloat16,
        {
            "num_local_experts": 0,
            "position_embedding_type": None,
            "tie_word_embeddings": True,
            "mamba_n_heads": 1,
            "layer_types": ["full_attention"] * 3,
        },
    ),
    "llama4-tiny": ("llama4_text", torch.float32, SMALL),
    "gemma4-tiny": (
        "gemma4_text",
        torch.float32,
        SMALL
        | {
            "num_hidden_layers": 4,
            "intermediate_size": 13,
            "hidden_size_per_layer_input": 4,
            "num_kv_shared_layers": 2,
            "vocab_size_per_layer_input": 131,
            "layer_types": ["sliding_attention", "full_attention"] * 2,
        },
    ),
    "gemma4-dense": (
        "gemma4_text",
        torch.bfloat16,
        SMALL
        | {
            "attention_k_eq_v": True,
            "hidden_size_per_layer_input": 0,
            "layer_types": ["sliding_attention", "full_attention"],
            "tie_word_embeddings": False,
        },
    ),
    "gemma4-moe": (
        "gemma4_text",
        torch.float32,
        SMALL
        | {
            "enable_moe_block": True,
            "attention_k_eq_v": True,
            "hidden_size_per_layer_input": 0,
            "layer_types": ["sliding_attention", "full_attention"],
        },
    ),
    "phimoe-tiny": ("phimoe", torch.float32, {}),
    "phimoe-longrope": (
        "phimoe",
        torch.float32,
        {
            "attention_bias": False,
            "rope_parameters": longrope(8) | MSCALES,
            "sliding_window": None,
        },
    ),
    "minimax_m2-tiny": ("minimax_m2", torch.float32, {}),
    "glm-tiny": ("glm", torch.float32, {}),
    "cwm-tiny": ("cwm", torch.float32, {}),
    "dots1-tiny": ("dots1", torch.float32, {}),
    "exaone_moe-tiny": ("exaone_moe", torch.float32, {}),
    "ernie4_5-tiny": ("ernie4_5", torch.float32, {"use_bias": True}),
    "ernie4_5_moe-tiny": ("ernie4_5_moe", torch.float32, {}),
    "hunyuan_moe-tiny": ("hunyuan_v1_moe", torch.float32, {}),
    "llama4-experts": ("llama4_text", torch.float32, SMALL | {"interleave_moe_layer_step": 1}),
}
