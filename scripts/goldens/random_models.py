"""Writes checkpoints with random shapes, for the comparisons with transformers.

`make_random` takes a name of NAMES, which are the families of `family_cases` and those that `make_models`
describes by functions. MIXTURES are those with experts.
"""

import random

import torch
from family_cases import FAMILIES, TAKEN, model_of, random_config
from make_checkpoint import write_tokenizer
from make_models import (
    LLAMA3_ROPE,
    Case,
    deepseek_v2,
    deepseek_v3,
    gemma2,
    gemma3,
    glm4_moe_lite,
    gpt2,
    llama,
    llama4_yarn,
    longrope,
    mistral,
    mistral4,
    mixtral,
    qwen2,
    qwen3,
    qwen3_moe,
    rope,
    write_checkpoint,
    yarn,
)

WITH_LATENTS = (deepseek_v2, deepseek_v3, glm4_moe_lite, mistral4)
DESCENDANTS = {
    make.__name__: make for make in (mistral, qwen2, qwen3, gemma2, gemma3, *WITH_LATENTS, mixtral, qwen3_moe)
}
NAMES = (*DESCENDANTS, *FAMILIES)
MIXTURES = (
    *("deepseek_v2", "deepseek_v3", "glm4_moe_lite", "mistral4", "mixtral", "qwen3_moe"),
    *(name for name, family in FAMILIES.items() if any(key in family.base for key in TAKEN)),
)


def random_rope(generator, head_dim):
    turns = {"beta_fast": generator.choice([8.0, 32]), "beta_slow": generator.choice([1, 2.5])}
    choices = [
        LLAMA3_ROPE,
        {"rope_type": "default", "rope_theta": 5000.0},
        rope("linear", factor=generator.choice([2.5, 8.0])),
        rope("dynamic", factor=4.0),
        yarn(truncate=generator.random() < 0.5, **turns),
        yarn(mscale=0.7, mscale_all_dim=generator.choice([0.4, 1.0])),
        longrope(head_dim // 2, original=310),
    ]
    return generator.choice(choices)


def random_windows(generator, layers):
    """Keys of Qwen and Gemma."""
    kinds = ["sliding_attention", "full_attention"]
    return {
        "layer_types": [generator.choice(kinds) for _ in range(layers)],
        "sliding_window": generator.randrange(1, 200),
    }


def random_experts(generator):
    """Keys of DeepSeek."""
    groups, size = generator.choice([(1, 9), (3, 4), (4, 7)])
    kept = generator.randrange(1, groups + 1)
    return {
        "n_routed_experts": groups * size,
        "n_group": groups,
        "topk_group": kept,
        "num_experts_per_tok": generator.randrange(1, min(6, kept * size) + 1),
        "n_shared_experts": generator.randrange(1, 3),
        "moe_intermediate_size": generator.randrange(5, 50),
        "routed_scaling_factor": generator.choice([1.0, 2.5]),
    }


def latent_options(make, generator, layers):
    """Keys of DeepSeek; transformers' V2 wants even sizes around rotated parts."""
    dense = generator.choice([0, 1, layers])
    which = {"first_k_dense_replace": dense}
    if make is glm4_moe_lite:
        which = {"mlp_layer_types": ["dense"] * dense + ["sparse"] * (layers - dense)}
    options = random_experts(generator) | {
        **which,
        "q_lora_rank": generator.choice([None, generator.randrange(5, 60)]),
        "kv_lora_rank": 2 * generator.randrange(4, 40),
        "qk_nope_head_dim": 2 * generator.randrange(2, 20),
        "v_head_dim": generator.randrange(3, 40),
        "attention_bias": generator.random() < 0.3,
    }
    if make is deepseek_v2:
        options["topk_method"] = generator.choice(["greedy", "group_limited_greedy"])
        return options | {"mlp_bias": generator.random() < 0.3}
    return options | {"rope_interleave": generator.random() < 0.5}


def family_options(make, generator, layers):
    chance = generator.random
    if make is llama:
        return {"attention_bias": chance() < 0.3, "mlp_bias": chance() < 0.3}
    if make in (mistral, mixtral):
        return {"sliding_window": generator.choice([None, generator.randrange(1, 200)])}
    if make in WITH_LATENTS:
        return latent_options(make, generator, layers)
    if make is qwen3_moe:
        return {"norm_topk_prob": chance() < 0.5, "attention_bias": chance() < 0.3}
    options = random_windows(generator, layers)
    if make in (qwen2, qwen3):
        options["use_sliding_window"] = True
    if make is not qwen2:
        options["attention_bias"] = chance() < 0.3
    if make in (gemma2, gemma3):
        options["query_pre_attn_scalar"] = generator.randrange(4, 40)
        options["final_logit_softcapping"] = generator.choice([None, 7.0])
    if make is gemma2:
        options["attn_logit_softcapping"] = generator.choice([None, 1.7])
    return options


def random_case(generator, make=None):
    """A checkpoint with a random shape, for Llama or GPT-2 if no family is given."""
    dtype = generator.choice([torch.float32, torch.float16, torch.bfloat16])
    vocab = generator.randrange(257, 400)
    heads = generator.choice([1, 2, 3, 4, 6, 9])
    layers = generator.randrange(1, 4)
    if make is None and generator.random() < 0.3:
        inner = generator.choice([None, 77, 130])
        hidden = heads * generator.randrange(3, 20)
        case = gpt2(dtype, vocab_size=vocab, n_embd=hidden, n_head=heads, n_layer=layers, n_inner=inner)
        case.config["n_positions"] = 320
        return case
    make = make or llama
    head_dim = 2 * generator.randrange(3, 33)
    ropes = {"rope_parameters": random_rope(generator, head_dim)}
    if make is gemma3:
        # heddle refuses truncate = false for ropes by layer.
        full = {key: value for key, value in ropes["rope_parameters"].items() if key != "truncate"}
        ropes = {"full_rope": full}
    kv_heads = generator.choice([k for k in range(1, heads + 1) if heads % k == 0])
    of_head = {"num_key_value_heads": kv_heads, "head_dim": head_dim}
    if make is mistral4:
        ropes = {"rope_parameters": llama4_yarn(generator.choice([0.1, 0.3]))}
    if make in WITH_LATENTS:
        of_head = {"num_key_value_heads": heads, "qk_rope_head_dim": head_dim}
    return make(
        dtype,
        vocab_size=vocab,
        hidden_size=heads * generator.randrange(5, 20),
        intermediate_size=generator.randrange(20, 200),
        num_hidden_layers=layers,
        num_attention_heads=heads,
        **of_head,
        max_position_embeddings=320,
        tie_word_embeddings=generator.random() < 0.5,
        **family_options(make, generator, layers),
        **ropes,
    )


def make_random(folder, seed, name=None):
    """Writes a checkpoint of the family of that name; without one, a Llama or a GPT-2."""
    generator = random.Random(seed)
    if name in FAMILIES:
        config, dtype = random_config(name, generator)
        case = Case(model_of(name), config, dtype)
    else:
        case = random_case(generator, DESCENDANTS.get(name))
    case.seed = seed
    case.config["eos_token_id"] = None  # a greedy text shall not end early
    write_checkpoint(case, folder)
    write_tokenizer(folder, case.config["vocab_size"])
