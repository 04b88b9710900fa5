"""Tiny checkpoints of the families that differ from Llama by options: what each is made of, as data.

`golden_config` makes those whose results the tree keeps (`family_goldens`), `random_config` random ones.
"""

from dataclasses import dataclass, field

import torch

YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 8.0, "original_max_position_embeddings": 32}
THETA = {"rope_type": "default", "rope_theta": 5000.0}
LINEAR = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}


@dataclass
class Family:
    """`base`: keys of every checkpoint. `choices`: keys with the values that random ones may have; the first
    one is that of the golden. `divided`: heads are as wide as hidden_size / num_attention_heads.
    `layer_type`: what layer_types says of each layer, or of some, which repeat."""

    model: str
    base: dict = field(default_factory=dict)
    choices: dict = field(default_factory=dict)
    divided: bool = False
    layer_type: str = ""
    names: dict = field(default_factory=dict)  # sizes that have other names, or none


BIAS = [False, True]
TURN = {"rope_parameters": [THETA, LINEAR, YARN]}


def partial(*factors):
    """Ropes that turn a part of each head."""
    return {"rope_parameters": [THETA | {"partial_rotary_factor": factor} for factor in factors]}


def llama4_yarn(beta):
    return YARN | {"llama_4_scaling_beta": beta, "mscale": 1.0, "mscale_all_dim": 1.0}


def ropes_of_layers(full):
    return {"rope_parameters": [{"full_attention": full, "sliding_attention": THETA}]}


def longrope(pairs):
    short, long = ([1 + step * i for i in range(pairs)] for step in (0.25, 1.5))
    return {
        "rope_type": "longrope",
        "rope_theta": 10000.0,
        "partial_rotary_factor": 0.75,
        "original_max_position_embeddings": 128,
        "short_factor": short,
        "long_factor": long,
    }


MSCALES = {"partial_rotary_factor": 1.0, "short_mscale": 1.25, "long_mscale": 1.5}
WINDOW = {"sliding_window": [9, None, 70]}
EXPERTS = {"num_experts_per_tok": 3, "moe_intermediate_size": 19}
# Keys that say how many experts a token takes.
TAKEN = ("num_experts_per_tok", "moe_k", "moe_topk")
GROUPED = EXPERTS | {"first_k_dense_replace": 1}
GROUPS = {"n_group": [4, 1], "topk_group": [1], "routed_scaling_factor": [1.5, 1.0]}
ALPHA = {
    "rope_parameters": [
        {"rope_type": "dynamic", "rope_theta": 10000.0, "alpha": 50.0, "factor": 1.0},
        THETA,
    ],
}
GRANITE = {
    "embedding_multiplier": [7.0, 12.0],
    "attention_multiplier": [0.2, 0.015625],
    "residual_multiplier": [0.6, 0.22],
    "logits_scaling": [0.75, 8.0],
    "attention_bias": BIAS,
    **TURN,
}
# Layers with linear attention, and one with attention whose heads have gates.
DELTA = {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 12,
    "linear_value_head_dim": 20,
}
DELTA_CHOICES = {"full_attention_interval": [2, 3], "linear_conv_kernel_dim": [4, 2], **partial(0.25, 0.5)}
# Layers of Mamba-2.
MAMBA = {
    "mamba_n_heads": [4, 8],
    "mamba_n_groups": [2, 1],
    "mamba_d_state": [12, 40],
    "mamba_d_conv": [4, 2],
    "mamba_chunk_size": [64],
    "mamba_conv_bias": [True, False],
    "mamba_proj_bias": BIAS,
    "time_step_limit": [(0.0, float("inf")), (0.4, 0.9)],
}
SHARED_EXPERT = EXPERTS | {"num_experts": 11, "shared_expert_intermediate_size": 23}
PARALLEL = {"use_parallel_residual": [True, False]}
FALCON_NEW = {"new_decoder_architecture": True}

FAMILIES = {
    "gemma": Family("Gemma", {"pad_token_id": 0, "bos_token_id": 1}, {"attention_bias": BIAS, **TURN}),
    "phi3": Family(
        "Phi3",
        {"pad_token_id": 0, "original_max_position_embeddings": 4096},
        {**WINDOW, **partial(0.75, 1.0, 0.5)},
        divided=True,
    ),
    "qwen2_moe": Family(
        "Qwen2Moe",
        EXPERTS | {"num_experts": 11, "shared_expert_intermediate_size": 23, "decoder_sparse_step": 2},
        {"norm_topk_prob": [False, True], "qkv_bias": [True, False], "decoder_sparse_step": [2, 1], **TURN},
    ),
    "qwen3_next": Family(
        "Qwen3Next",
        DELTA | SHARED_EXPERT,
        {"norm_topk_prob": [True, False], "decoder_sparse_step": [1, 2], **DELTA_CHOICES},
    ),
    "qwen3_5": Family("Qwen3_5", DELTA, DELTA_CHOICES),
    "qwen3_5_moe": Family("Qwen3_5Moe", DELTA | SHARED_EXPERT, DELTA_CHOICES),
    "lfm2": Family(
        "Lfm2",
        {"pad_token_id": 0, "block_multiple_of": 8},
        {
            "full_attn_idxs": [[1], [0]],
            "conv_bias": [True, False],
            "conv_L_cache": [3, 4],
            "block_auto_adjust_ff_dim": [True, False],
            **TURN,
        },
        divided=True,
    ),
    "lfm2_moe": Family(
        "Lfm2Moe",
        EXPERTS | {"num_experts": 11, "num_dense_layers": 1, "pad_token_id": 0},
        {
            "use_expert_bias": [True, False],
            "norm_topk_prob": [True, False],
            "routed_scaling_factor": [1.5, 1.0],
            **TURN,
        },
        divided=True,
        layer_type="conv full_attention",
    ),
    "arcee": Family("Arcee", {}, {"attention_bias": BIAS, "mlp_bias": [True, False], **TURN}),
    "nemotron": Family("Nemotron", {}, {"attention_bias": BIAS, "mlp_bias": BIAS, **partial(0.5, 1.0, 0.25)}),
    "nemotron_h": Family(
        "NemotronH",
        EXPERTS
        | {
            "mamba_head_dim": 20,
            "ssm_state_size": 12,
            "chunk_size": 64,
            "n_routed_experts": 12,
            "moe_shared_expert_intermediate_size": 23,
            "pad_token_id": 0,
        },
        {
            "mamba_num_heads": [4, 8],
            "n_groups": [2, 1],
            "conv_kernel": [4, 2],
            "use_conv_bias": [True, False],
            "use_bias": BIAS,
            "mlp_bias": BIAS,
            "time_step_min": [0.4, 0.001],
            "moe_latent_size": [None, 14],
            "norm_topk_prob": [True, False],
            **GROUPS,
        },
        layer_type="linear_attention full_attention moe mlp",
        names={"num_hidden_layers": None},
    ),
    "smollm3": Family(
        "SmolLM3", {"pad_token_id": 0}, {"no_rope_layer_interval": [2, 3], "attention_bias": BIAS, **TURN}
    ),
    "bamba": Family(
        "Bamba",
        {},
        {
            **MAMBA,
            "attn_layer_indices": [[1], [0, 2], None],
            "attention_bias": BIAS,
            "mlp_bias": BIAS,
            **partial(0.5, 1.0),
        },
        divided=True,
    ),
    "falcon_h1": Family(
        "FalconH1",
        {"pad_token_id": 0},
        {
            **MAMBA,
            "mamba_d_ssm": [56, 40],
            "mamba_rms_norm": [True, False],
            "mamba_norm_before_gate": [True, False],
            "projectors_bias": BIAS,
            "ssm_multipliers": [[0.7, 0.5, 1.5, 0.6, 0.8], None],
            "mlp_multipliers": [[0.6, 0.8], None],
            "key_multiplier": [0.6, 1.0],
            "attention_in_multiplier": [0.9, 1.0],
            "attention_out_multiplier": [0.7, 1.0],
            "ssm_in_multiplier": [1.2, 1.0],
            "ssm_out_multiplier": [0.6, 1.0],
            "embedding_multiplier": [1.5, 1.0],
            "lm_head_multiplier": [0.75, 1.0],
            "attention_bias": BIAS,
            "mlp_bias": BIAS,
            **TURN,
        },
    ),
    "granite": Family("Granite", {}, {**GRANITE, "mlp_bias": [True, False]}, divided=True),
    "granitemoe": Family(
        "GraniteMoe",
        {"num_local_experts": 5, "num_experts_per_tok": 2, "intermediate_size": 19},
        GRANITE,
        divided=True,
    ),
    "granitemoehybrid": Family(
        "GraniteMoeHybrid",
        {"num_experts_per_tok": 2, "intermediate_size": 19},
        {
            **GRANITE,
            **MAMBA,
            "shared_intermediate_size": [29, 40],
            "num_local_experts": [5, 0],
            "position_embedding_type": ["rope", None],
        },
        divided=True,
        layer_type="linear_attention full_attention",
    ),
    "llama4_text": Family(
        "Llama4",
        {
            "num_local_experts": 5,
            "num_experts_per_tok": 1,
            "intermediate_size": 19,
            "intermediate_size_mlp": 23,
            "floor_scale": 11,
            "attn_scale": 0.7,
            "attention_chunk_size": 320,
        },
        {
            "no_rope_layer_interval": [2, 3],
            "interleave_moe_layer_step": [2, 1],
            "use_qk_norm": [True, False],
            "attn_temperature_tuning": [True, False],
            "attention_bias": BIAS,
            **TURN,
        },
    ),
    "gemma4_text": Family(
        "Gemma4",
        {
            "pad_token_id": 0,
            "bos_token_id": 1,
            "vocab_size_per_layer_input": 400,
            "sliding_window": 9,
            **{"num_experts": 7, "top_k_experts": 3, "moe_intermediate_size": 11},
        },
        {
            "enable_moe_block": [False, True],
            "global_head_dim": [16, 24],
            "num_global_key_value_heads": [1, None],
            "attention_k_eq_v": [False, True],
            "hidden_size_per_layer_input": [16, 0, 4],
            "num_kv_shared_layers": [0],
            "use_double_wide_mlp": [True, False],
            "final_logit_softcapping": [8.0, None],
            "attention_bias": BIAS,
        },
        layer_type="sliding_attention full_attention",
    ),
    "phimoe": Family(
        "Phimoe",
        {"num_local_experts": 7, "num_experts_per_tok": 2, "intermediate_size": 19},
        {
            "attention_bias": [True, False],
            "lm_head_bias": [True, False],
            "router_jitter_noise": [0.2, 0.01, 0.0],
            "rope_parameters": [THETA],
            **WINDOW,
        },
        divided=True,
    ),
    "minimax_m2": Family(
        "MiniMaxM2",
        {"num_local_experts": 7, "num_experts_per_tok": 3, "intermediate_size": 19},
        partial(0.5, 1.0, 0.25),
    ),
    "olmo": Family("Olmo", {}, {"clip_qkv": [0.9, None], "attention_bias": BIAS, **TURN}, divided=True),
    "olmo2": Family("Olmo2", {}, {"attention_bias": BIAS, **TURN}),
    "olmo3": Family("Olmo3", {"sliding_window": 9}, {"attention_bias": BIAS, **ropes_of_layers(YARN)}),
    "olmoe": Family(
        "Olmoe",
        {"num_experts": 11, "num_experts_per_tok": 3, "intermediate_size": 19},
        {"norm_topk_prob": [False, True], "clip_qkv": [None, 0.7], **TURN},
        divided=True,
    ),
    "glm4": Family("Glm4", {"pad_token_id": 0}, {"attention_bias": [True, False], **partial(0.5, 1.0)}),
    "glm4_moe": Family(
        "Glm4Moe",
        GROUPED | {"n_routed_experts": 12, "n_shared_experts": 1, "pad_token_id": 0},
        {
            "use_qk_norm": [True, False],
            "attention_bias": [True, False],
            **GROUPS,
            **partial(0.5, 0.25),
        },
    ),
    "cohere": Family(
        "Cohere",
        {"pad_token_id": 0},
        {"use_qk_norm": [True, False], "logit_scale": [0.7, 0.0625], "attention_bias": BIAS, **TURN},
        divided=True,
    ),
    "cohere2": Family(
        "Cohere2",
        {"pad_token_id": 0, "sliding_window": 9},
        {"sliding_window_pattern": [2, 3], "logit_scale": [0.7, 0.25], "attention_bias": BIAS, **TURN},
        divided=True,
    ),
    "starcoder2": Family("Starcoder2", {}, {**WINDOW, "use_bias": [True, False], **TURN}, divided=True),
    "stablelm": Family(
        "StableLm",
        {},
        {**PARALLEL, "qk_layernorm": [True, False], "use_qkv_bias": BIAS, **partial(0.25, 0.5)},
        divided=True,
    ),
    "gpt_neox": Family(
        "GPTNeoX",
        {},
        {**PARALLEL, "attention_bias": [True, False], **partial(0.25, 1.0)},
        divided=True,
        names={"num_key_value_heads": None},
    ),
    "phi": Family("Phi", {}, {"qk_layernorm": [False, True], **partial(0.5, 1.0, 0.25)}, divided=True),
    "falcon": Family(
        "Falcon",
        FALCON_NEW,
        {
            "bias": [True, False],
            "num_ln_in_parallel_attn": [2, 1],
            "alibi": [False, True],
            **TURN,
        },
        divided=True,
        names={"intermediate_size": "ffn_hidden_size", "num_key_value_heads": "num_kv_heads"},
    ),
    "ministral3": Family(
        "Ministral3",
        {},
        {"rope_parameters": [llama4_yarn(0.3), llama4_yarn(0.1)], "sliding_window": [None, 20]},
    ),
    "seed_oss": Family(
        "SeedOss", {}, {"attention_out_bias": [True, False], "mlp_bias": [True, False], **TURN}
    ),
    "exaone4": Family("Exaone4", {}, {"sliding_window": [9, 70], "sliding_window_pattern": [2, 4], **TURN}),
    "hunyuan_v1_dense": Family(
        "HunYuanDenseV1",
        {},
        {"attention_bias": BIAS, **ALPHA},
    ),
    "glm": Family("Glm", {"pad_token_id": 0}, {"attention_bias": [True, False], **partial(0.5, 1.0)}),
    "cwm": Family("Cwm", {"sliding_window": 9, "bos_token_id": 1}, {"mlp_bias": BIAS, **TURN}),
    "dots1": Family(
        "Dots1",
        GROUPED | {"n_routed_experts": 12, "n_shared_experts": 2, "max_window_layers": 2},
        {"sliding_window": [9, None], "norm_topk_prob": BIAS, "attention_bias": BIAS, **GROUPS, **TURN},
    ),
    "exaone_moe": Family(
        "ExaoneMoe",
        GROUPED | {"num_experts": 12, "num_shared_experts": 2},
        {"sliding_window": [9, 70], "sliding_window_pattern": [2, 4], **GROUPS, **TURN},
    ),
    "ernie4_5": Family("Ernie4_5", {"pad_token_id": 0, "bos_token_id": 1}, {"use_bias": BIAS, **TURN}),
    "ernie4_5_moe": Family(
        "Ernie4_5_Moe",
        {"moe_num_experts": 11, "moe_k": 3, "moe_intermediate_size": 19, "pad_token_id": 0},
        {
            "moe_num_shared_experts": [2, 0],
            "moe_layer_start_index": [1, 0],
            "moe_layer_interval": [1, 2],
            "use_bias": BIAS,
            **TURN,
        },
        divided=True,
    ),
    "hunyuan_v1_moe": Family(
        "HunYuanMoEV1",
        {"num_experts": 7, "moe_topk": 3, "intermediate_size": 19, "pad_token_id": 0},
        {"attention_bias": BIAS, **ALPHA},
    ),
    "gpt_oss": Family(
        "GptOss",
        {"num_local_experts": 7, "num_experts_per_tok": 3, "intermediate_size": 19},
        {
            "sliding_window": [9, 70],
            "swiglu_limit": [1.5, 7.0],
            "attention_bias": [True, False],
            "rope_parameters": [YARN | {"truncate": False}, THETA],
        },
    ),
}


def config_of(family, sizes, pick):
    """`pick` chooses among the values of a key."""
    heads = sizes["num_attention_heads"]
    chosen = {key: pick(values) for key, values in family.choices.items()}
    head_dim = {} if family.divided else {"head_dim": sizes["head_dim"]}
    own = {key: value for key, value in sizes.items() if key != "head_dim"}
    if family.divided:
        own["hidden_size"] = heads * sizes["head_dim"]
    config = own | head_dim | family.base | chosen
    if family.layer_type:
        layers = sizes["num_hidden_layers"]
        config["layer_types"] = (family.layer_type.split() * layers)[:layers]
    for name, other in family.names.items():
        value = config.pop(name)
        if other:
            config[other] = value
    return config


def golden_config(name, base, **changes):
    """The golden's: the first choices, and `changes`."""
    family = FAMILIES[name]
    sizes = base | {
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
    }
    return config_of(family, sizes, lambda values: values[0]) | changes


def model_of(name):
    import transformers  # where only the tables are needed, it may be missing

    return getattr(transformers, FAMILIES[name].model + "ForCausalLM")


def random_config(name, generator):
    heads = generator.choice([1, 2, 4, 6, 9])
    sizes = {
        "vocab_size": generator.randrange(257, 400),
        "hidden_size": heads * generator.randrange(5, 20),
        "intermediate_size": generator.randrange(20, 200),
        "num_hidden_layers": generator.randrange(1, 5),
        "num_attention_heads": heads,
        "num_key_value_heads": generator.choice([k for k in range(1, heads + 1) if heads % k == 0]),
        "head_dim": 8 * generator.randrange(1, 9),
        "max_position_embeddings": 320,
    }
    config = config_of(FAMILIES[name], sizes, generator.choice)
    config["tie_word_embeddings"] = generator.random() < 0.5
    return config, generator.choice([torch.float32, torch.float16, torch.bfloat16])
