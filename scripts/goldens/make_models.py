"""Writes the tiny checkpoints in tests/goldens/models and the results of transformers on them.

    .venv/bin/python scripts/goldens/make_models.py [--out FOLDER] [NAME...]

Sizes are odd on purpose, and weights are large enough that logits are not flat. The reference is the
checkpoint as loaded again, in fp32: a model that is converted in memory has rounded its rotary tables too.
Next to each checkpoint is golden.safetensors:

    tokens          i32 [n]         a random text
    logits          f32 [n, vocab]  after each of its tokens
    prompt          i32 [p]
    greedy          i32 [m]         the most likely tokens after `prompt`
    greedy_margin   f32 [m]         their logits minus the second largest
    bf16_max_abs    f32 [1]         the error of transformers in bf16 against these logits, largest
    bf16_rms        f32 [1]         and root mean square

"""

import argparse
import json
import math
import shutil
from dataclasses import dataclass
from pathlib import Path

import torch
from family_cases import TAKEN, golden_config, llama4_yarn, model_of
from family_goldens import GOLDENS
from reference_model import load_reference
from safetensors.torch import save_file
from transformers import (
    DeepseekV2ForCausalLM,
    DeepseekV3ForCausalLM,
    Gemma2ForCausalLM,
    Gemma3ForCausalLM,
    Glm4MoeLiteForCausalLM,
    GPT2LMHeadModel,
    LlamaForCausalLM,
    Mistral4ForCausalLM,
    MistralForCausalLM,
    MixtralForCausalLM,
    Qwen2ForCausalLM,
    Qwen3ForCausalLM,
    Qwen3MoeForCausalLM,
)
from transformers.utils import logging

ROOT = Path(__file__).resolve().parents[2]
VOCAB, EOS = 131, 2
NUM_TOKENS, NUM_PROMPT, NUM_GREEDY = 73, 11, 16
LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,  # so that kept, blended and divided frequencies all occur
}


# Projections whose results make attention choose.
SHARP = ("q_proj", "q_b_proj", "k_proj", "kv_a_proj", "c_attn", "qkv_proj", "query_key_value")


@dataclass
class Case:
    model: type
    config: dict
    dtype: torch.dtype = torch.float32
    shard_size: str = "1GB"
    as_transformers_4: bool = False  # the names of keys in config.json
    seed: int = 0
    num_tokens: int = NUM_TOKENS

    @property
    def may_flip(self):
        """Rounding may send tokens to other experts, and then outputs differ by more than rounding."""
        takes = any(key in self.config for key in TAKEN)
        has_experts = takes and self.config.get("num_local_experts") != 0
        return has_experts and self.dtype is not torch.float32


def decoder(model, dtype, changes):
    sizes = {
        "vocab_size": VOCAB,
        "hidden_size": 40,
        "intermediate_size": 77,
        "num_hidden_layers": 2,
        "num_attention_heads": 5,
        "num_key_value_heads": 5,
        "max_position_embeddings": 256,
        "rms_norm_eps": 1e-5,
        "eos_token_id": EOS,
    }
    return Case(model, sizes | changes, dtype)


def llama(dtype=torch.float32, **changes):
    return decoder(LlamaForCausalLM, dtype, changes)


def mistral(dtype=torch.float32, **changes):
    return decoder(MistralForCausalLM, dtype, {"num_key_value_heads": 1, "sliding_window": 13} | changes)


def qwen2(dtype=torch.float32, **changes):
    return decoder(Qwen2ForCausalLM, dtype, {"num_key_value_heads": 1} | changes)


def qwen3(dtype=torch.float32, **changes):
    return decoder(Qwen3ForCausalLM, dtype, {"num_key_value_heads": 1, "head_dim": 14} | changes)


def mixtral(dtype=torch.float32, **changes):
    experts = {"num_local_experts": 5, "num_experts_per_tok": 2, "intermediate_size": 37}
    return decoder(MixtralForCausalLM, dtype, {"num_key_value_heads": 1} | experts | changes)


def qwen3_moe(dtype=torch.float32, **changes):
    experts = {"num_experts": 11, "num_experts_per_tok": 3, "moe_intermediate_size": 19}
    return decoder(Qwen3MoeForCausalLM, dtype, {"num_key_value_heads": 1, "head_dim": 14} | experts | changes)


def gemma(model, dtype, changes):
    sizes = {
        "num_hidden_layers": 3,
        "num_key_value_heads": 1,
        "head_dim": 14,
        "query_pre_attn_scalar": 17,
        "sliding_window": 9,
        "pad_token_id": 0,
        "bos_token_id": 1,
    }
    return decoder(model, dtype, sizes | changes)


def gemma2(dtype=torch.float32, **changes):
    caps = {"attn_logit_softcapping": 2.0, "final_logit_softcapping": 8.0}
    return gemma(Gemma2ForCausalLM, dtype, caps | changes)


def gemma3(dtype=torch.float32, full_rope=None, **changes):
    ropes = {
        "full_attention": full_rope or {"rope_type": "default", "rope_theta": 50000.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 700.0},
    }
    pattern = {"rope_parameters": ropes, "sliding_window_pattern": 3}
    return gemma(Gemma3ForCausalLM, dtype, pattern | changes)


LATENT = {
    "num_hidden_layers": 3,
    "first_k_dense_replace": 3,
    "q_lora_rank": None,
    "kv_lora_rank": 22,
    "qk_nope_head_dim": 9,
    "qk_rope_head_dim": 6,
    "v_head_dim": 7,
}


def deepseek(model, dtype, changes):
    return decoder(model, dtype, LATENT | changes)


def deepseek_v2(dtype=torch.float32, **changes):
    return deepseek(DeepseekV2ForCausalLM, dtype, changes)


def deepseek_v3(dtype=torch.float32, **changes):
    return deepseek(DeepseekV3ForCausalLM, dtype, {"q_lora_rank": 19} | changes)


def glm4_moe_lite(dtype=torch.float32, **changes):
    sizes = {key: value for key, value in LATENT.items() if key != "first_k_dense_replace"}
    experts = {"n_routed_experts": 12, "num_experts_per_tok": 3, "moe_intermediate_size": 19}
    return decoder(Glm4MoeLiteForCausalLM, dtype, sizes | {"q_lora_rank": 19} | experts | changes)


def mistral4(dtype=torch.float32, **changes):
    experts = {"n_routed_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 9}
    sizes = {"q_lora_rank": 19, "first_k_dense_replace": 1, "rope_parameters": llama4_yarn(0.3)}
    return deepseek(Mistral4ForCausalLM, dtype, sizes | experts | changes)


def deepseek_moe(make, dtype=torch.float32, **changes):
    experts = {
        "first_k_dense_replace": 1,
        "n_routed_experts": 12,
        "num_experts_per_tok": 3,
        "n_shared_experts": 2,
        "moe_intermediate_size": 19,
        "n_group": 4,
        "topk_group": 2,
    }
    return make(dtype, **(experts | changes))


def rope(rope_type, **more):
    return {"rope_type": rope_type, "rope_theta": 10000.0} | more


def yarn(**more):
    return rope("yarn", factor=8.0, original_max_position_embeddings=32, **more)


def longrope(pairs, original=128):
    """Short factors that matter, for `original` positions."""
    short, long = ([1 + step * i for i in range(pairs)] for step in (0.25, 1.5))
    length = {"original_max_position_embeddings": original}
    return rope("longrope", short_factor=short, long_factor=long, **length)


def gpt2(dtype=torch.float32, **changes):
    sizes = {"vocab_size": VOCAB, "n_embd": 40, "n_layer": 2, "n_head": 5, "n_positions": 96}
    return Case(GPT2LMHeadModel, sizes | {"bos_token_id": 1, "eos_token_id": EOS} | changes, dtype)


def cases_of_families():
    """The cases that family_cases describes, and others of one golden."""
    base = {
        "vocab_size": VOCAB,
        "hidden_size": 40,
        "intermediate_size": 77,
        "max_position_embeddings": 256,
        "eos_token_id": EOS,
    }
    small = {"hidden_size": 24, "intermediate_size": 29, "num_hidden_layers": 2}
    mistral = mistral4(qk_nope_head_dim=10, n_group=2, **small)
    mistral.num_tokens = 40
    return {
        name: Case(model_of(family), golden_config(family, base, **changes), dtype)
        for name, (family, dtype, changes) in GOLDENS.items()
    } | {
        "glm4_moe_lite-tiny": glm4_moe_lite(mlp_layer_types=["dense", "dense", "sparse"]),
        "mistral4-tiny": mistral,
    }


def cases():
    grouped = {"hidden_size": 60, "num_key_value_heads": 1, "head_dim": 20, "tie_word_embeddings": True}
    table = {
        "llama2-tiny": llama(num_hidden_layers=3),
        "llama3-tiny": llama(torch.bfloat16, rope_parameters=LLAMA3_ROPE, **grouped),
        "llama-f16": llama(torch.float16, hidden_size=72, num_attention_heads=6, num_key_value_heads=3),
        "llama-bias": llama(attention_bias=True, mlp_bias=True, hidden_act="gelu", num_key_value_heads=1),
        "llama-v4": llama(torch.bfloat16, rope_parameters=LLAMA3_ROPE, head_dim=12),
        "llama-sharded": llama(torch.bfloat16, num_hidden_layers=3, num_key_value_heads=1),
        "gpt2-tiny": gpt2(),
        "gpt2-bf16": gpt2(torch.bfloat16, n_layer=3),
        "gpt2-options": gpt2(
            n_inner=77,
            activation_function="gelu",
            scale_attn_by_inverse_layer_idx=True,
            tie_word_embeddings=False,
        ),
    }
    windows = {"use_sliding_window": True, "sliding_window": 9, "max_window_layers": 1}
    table |= {
        "llama-longrope": llama(torch.bfloat16, head_dim=12, rope_parameters=longrope(6)),
        "mistral-tiny": mistral(),
        "mistral-bf16": mistral(torch.bfloat16, sliding_window=7, rope_parameters=rope("linear", factor=4.0)),
        "qwen2-tiny": qwen2(**windows),
        "qwen2-bf16": qwen2(torch.bfloat16, tie_word_embeddings=True, rope_parameters=yarn()),
        "qwen3-tiny": qwen3(num_hidden_layers=3, **windows),
        "qwen3-bf16": qwen3(torch.bfloat16, attention_bias=True, rope_parameters=rope("dynamic", factor=2.0)),
        "gemma2-tiny": gemma2(),
        "gemma2-bf16": gemma2(torch.bfloat16, num_key_value_heads=5, attn_logit_softcapping=None),
        "gemma3-tiny": gemma3(layer_types=["sliding_attention", "full_attention", "sliding_attention"]),
        "gemma3-v4": gemma3(
            torch.bfloat16, full_rope=rope("linear", factor=8.0), final_logit_softcapping=6.0
        ),
    }
    wide = {"hidden_size": 96, "num_attention_heads": 6, "num_key_value_heads": 6}
    wide |= {
        "kv_lora_rank": 48,
        "q_lora_rank": 24,
        "qk_nope_head_dim": 24,
        "qk_rope_head_dim": 16,
        "v_head_dim": 32,
    }
    table |= {
        "deepseek_v2-tiny": deepseek_v2(mlp_bias=True, qk_nope_head_dim=10),
        "deepseek_v2-bf16": deepseek_v2(
            torch.bfloat16, rope_parameters=yarn(mscale=0.7, mscale_all_dim=0.7), **wide
        ),
        "deepseek_v3-tiny": deepseek_v3(attention_bias=True, rope_interleave=False),
        "deepseek_v3-bf16": deepseek_v3(
            torch.bfloat16, rope_parameters=yarn(mscale=1.0, mscale_all_dim=0.8), **wide
        ),
        "mixtral-tiny": mixtral(num_hidden_layers=3, sliding_window=13),
        "mixtral-bf16": mixtral(torch.bfloat16, tie_word_embeddings=True),
        "qwen3_moe-tiny": qwen3_moe(num_hidden_layers=3, decoder_sparse_step=2, norm_topk_prob=True),
        "qwen3_moe-bf16": qwen3_moe(torch.bfloat16, num_experts=7, attention_bias=True, mlp_only_layers=[0]),
        "deepseek_v2-moe": deepseek_moe(deepseek_v2, qk_nope_head_dim=10, topk_method="group_limited_greedy"),
        "deepseek_v2-greedy": deepseek_moe(
            deepseek_v2, torch.bfloat16, num_hidden_layers=2, qk_nope_head_dim=10, routed_scaling_factor=1.5
        ),
        "deepseek_v3-moe": deepseek_moe(deepseek_v3),
        "deepseek_v3-odd": deepseek_moe(
            deepseek_v3, torch.bfloat16, num_hidden_layers=2, norm_topk_prob=False, n_group=3
        ),
    }
    # Head sizes that GPUs have fast attention for.
    table |= {
        "llama-head64": llama(torch.bfloat16, head_dim=64, num_attention_heads=4, num_key_value_heads=2),
        "qwen3-head128": qwen3(torch.bfloat16, head_dim=128, num_attention_heads=4),
    }
    table |= cases_of_families()
    for case in table.values():
        if case.may_flip:
            case.num_tokens = 25  # so that some seed in a hundred has firm choices
    table["llama-v4"].as_transformers_4 = True
    table["gemma3-v4"].as_transformers_4 = True
    table["llama-sharded"].shard_size = "40KB"
    for number, case in enumerate(table.values()):
        case.seed += 100 * number
    return table


def randomise(model, generator):
    """Gives every tensor values that have an effect: sharp attention, uneven norms, non-zero biases."""
    # A tied embedding is small, because otherwise each token would mostly predict itself; the last norm
    # compensates.
    tied, hidden = model.config.tie_word_embeddings, model.config.hidden_size
    embedding = (0.3 if tied else 2.0) / math.sqrt(hidden)
    # For the weights of its norms, but not of those that have a gate.
    kind = model.config.model_type
    less_one = float(
        kind.startswith(("gemma", "nemotron", "qwen3_next", "qwen3_5"))
        and kind not in ("gemma4_text", "nemotron_h")
    )
    last_norm = ("model.norm.weight", "ln_f.weight", "final_layernorm.weight", "final_layer_norm.weight")
    embeddings = ("lm_head", "embed_tokens", "wte", "embed_in", "embed_out", "embeddings")
    for name, weight in model.named_parameters():
        noise = torch.randn(weight.shape, generator=generator)
        if name.endswith("bias"):
            noise *= 0.3
        elif name.endswith("sinks"):
            noise += 1
        elif name.endswith("A_log"):
            noise -= 2  # a state lasts
        elif weight.dim() == 1 or "norm" in name:
            noise = 1 + 0.3 * noise
            if tied and name.endswith(last_norm):
                noise *= 6
            noise -= 0 if "linear_attn" in name else less_one
            if kind == "gemma4_text" and "q_norm" in name:
                noise *= 0.25  # nothing else divides its scores
        elif any(part in name for part in embeddings):
            noise *= embedding
        elif "wpe" in name:
            noise *= 0.2
        else:
            # GPT-2 and the experts of gpt-oss are stored [in, out].
            turned = model.config.model_type == "gpt2" and ".h." in name
            turned |= model.config.model_type == "gpt_oss" and weight.dim() == 3
            fan_in = weight.shape[-2 if turned else -1]
            sharp = any(part in name for part in SHARP)
            noise *= (1.6 if sharp else 1.0) / math.sqrt(fan_in)
        weight.data.copy_(noise)
    for name, bias in model.named_buffers():
        if name.endswith(("e_score_correction_bias", "expert_bias")):
            bias.copy_(0.2 * torch.randn(bias.shape, generator=generator))
        elif name.endswith("layer_scalar"):
            bias.copy_(1 + 0.3 * torch.randn(bias.shape, generator=generator))


def rename_keys_to_transformers_4(path):
    config = json.loads(path.read_text())
    rope = config.pop("rope_parameters")
    if "sliding_attention" in rope:
        config["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
        config.pop("layer_types")
        rope = rope["full_attention"]
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = rope
    config["torch_dtype"] = config.pop("dtype")
    config["transformers_version"] = "4.46.3"
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def write_checkpoint(case, folder):
    model = case.model(case.model.config_class(**case.config))
    randomise(model, torch.Generator().manual_seed(case.seed))
    shutil.rmtree(folder, ignore_errors=True)
    model.to(case.dtype).save_pretrained(folder, max_shard_size=case.shard_size)
    if case.as_transformers_4:
        rename_keys_to_transformers_4(folder / "config.json")


@torch.inference_mode()
def logits_of(folder, tokens, dtype):
    model = load_reference(folder, dtype)
    return model(torch.tensor([tokens])).logits[0].float()


@torch.inference_mode()
def choices_are_firm(folder, tokens, noise=0.02, draws=8):
    """True if the routers of a model choose the same experts when their inputs change slightly."""
    model = load_reference(folder, torch.float32)
    generator = torch.Generator().manual_seed(0)
    firm = []

    def compare(router, inputs, output):
        for _ in range(draws):
            near = inputs[0] * (1 + noise * torch.randn(inputs[0].shape, generator=generator))
            other = router.forward(near, *inputs[1:])
            firm.append(torch.equal(other[2].sort()[0], output[2].sort()[0]))

    for module in model.modules():
        if type(module).__name__.endswith(("TopKRouter", "TopkRouter")):
            module.register_forward_hook(compare)
    model(torch.tensor([tokens]))
    return bool(firm) and all(firm)


@torch.inference_mode()
def continue_greedily(folder, prompt):
    """The most likely tokens and their margins, each computed from the whole text before it."""
    model = load_reference(folder, torch.float32)
    text, margins = list(prompt), []
    for _ in range(NUM_GREEDY):
        best = model(torch.tensor([text])).logits[0, -1].topk(2)
        text.append(int(best.indices[0]))
        margins.append(float(best.values[0] - best.values[1]))
    return text[len(prompt) :], margins


def write_golden(case, folder):
    """False where the golden would test little: the greedy text repeats itself or ends, or rounding decides
    which experts tokens take."""
    generator = torch.Generator().manual_seed(10_000 + case.seed)
    tokens = torch.randint(3, VOCAB, (case.num_tokens,), generator=generator).tolist()
    prompt = tokens[:NUM_PROMPT]
    if case.may_flip and not choices_are_firm(folder, tokens):
        return False
    logits = logits_of(folder, tokens, torch.float32)
    greedy, margins = continue_greedily(folder, prompt)
    if len(set(greedy)) < 8 or EOS in greedy:
        return False
    if case.may_flip and not choices_are_firm(folder, prompt + greedy):
        return False
    error = logits_of(folder, tokens, torch.bfloat16) - logits
    tensors = {
        "tokens": torch.tensor(tokens, dtype=torch.int32),
        "logits": logits.contiguous(),
        "prompt": torch.tensor(prompt, dtype=torch.int32),
        "greedy": torch.tensor(greedy, dtype=torch.int32),
        "greedy_margin": torch.tensor(margins),
        "bf16_max_abs": error.abs().max().reshape(1),
        "bf16_rms": error.square().mean().sqrt().reshape(1),
    }
    save_file(tensors, folder / "golden.safetensors")
    largest, rms = float(tensors["bf16_max_abs"]), float(tensors["bf16_rms"])
    print(
        f"{folder.name:14} logits rms {logits.square().mean().sqrt():.3f}, of bf16's error {rms:.4f}, largest"
    )
    print(f"{'':14} {largest:.4f}; greedy {greedy}, margins from {min(margins):.3g}")
    return True


def write_model(case, folder):
    write_checkpoint(case, folder)
    return write_golden(case, folder)


def write_cases(about, table, folder, write):
    """Writes the cases that the command line names, each with the first seed that write() takes."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="which to write; all where none is given")
    parser.add_argument("--out", type=Path, default=folder)
    arguments = parser.parse_args()
    logging.disable_progress_bar()
    for name in arguments.names or table:
        while not write(table[name], arguments.out / name):
            table[name].seed += 1


def main():
    write_cases(__doc__, cases(), ROOT / "tests/goldens/models", write_model)


if __name__ == "__main__":
    main()
