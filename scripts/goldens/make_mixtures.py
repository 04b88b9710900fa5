"""Writes the mixtures of experts in tests/goldens/mixtures, and the results of transformers on them.

    .venv/bin/python scripts/goldens/make_mixtures.py [--out FOLDER] [NAME...]

They are bf16 checkpoints, one for each family, with texts of 17 and 300 tokens. Steps of many rows use other
kernels than short ones, and rounding in them must not send tokens to other experts. For a text of n tokens,
golden.safetensors has:

    tokens_n        i32 [n]
    routes_n        u8 [layers, n, k]  experts of each token in fp32, in rising order; layers without experts
                                       do not count
    firm_n          u8 [layers, n]     1: errors as large as bf16's change no choice, here and in layers below
    positions_n     i32 [m]            some positions whose choices are firm, and bf16's, in all layers
    logits_n        f32 [m, vocab]     the logits there
    bf16_max_abs_n  f32 [1]            the largest error of transformers in bf16 at all such positions

The error of bf16 is the largest of a layer's router logits, among positions that have the same experts in the
layers below: after other experts, a router sees more than rounding. The first layer's attention adds nothing,
so that its router sees embeddings, which are exact: there only errors of fp32 leave a choice open, and rows
that are rounded to bf16 take other experts for a few tokens.
"""

import copy

import torch
from family_cases import YARN, golden_config, model_of
from make_models import (
    ROOT,
    VOCAB,
    Case,
    deepseek_v2,
    deepseek_v3,
    mixtral,
    qwen3_moe,
    write_cases,
    write_checkpoint,
)
from reference_model import load_reference
from safetensors.torch import load_file, save_file

LENGTHS = (17, 300)
KEPT = 32  # positions whose logits a golden has
DRAWS = 400  # enough random errors that each pair of experts gets the worst one
LAYERS = 2
FIRM = 0.4  # the least share of firm positions
FLIPS = (
    2  # tokens of the long text that take other experts where the first router's rows are rounded, at least
)
FP32_ERROR = 1e-4  # more than sums of logits up to 4 in any order differ by

# Widths of whole 16 bytes, for products on tensor cores.
SIZES = {
    "vocab_size": VOCAB,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 320,
}
EXPERTS = {"num_experts_per_tok": 3, "moe_intermediate_size": 16}
LATENT = {
    "num_key_value_heads": 4,
    "kv_lora_rank": 32,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 16,
    "v_head_dim": 16,
}
GROUPS = {
    "n_routed_experts": 12,
    "n_shared_experts": 1,
    "n_group": 3,
    "topk_group": 2,
    "first_k_dense_replace": 0,
}
LONG_YARN = YARN | {"factor": SIZES["max_position_embeddings"] / 32, "truncate": False}


def of_family(name, **changes):
    config = golden_config(name, SIZES | {"eos_token_id": 2})
    return Case(model_of(name), config | SIZES | changes, torch.bfloat16)


def cases():
    bf16 = torch.bfloat16
    table = {
        "mixtral": mixtral(bf16, **SIZES | {"intermediate_size": 16, "num_local_experts": 8}),
        "qwen2_moe": of_family("qwen2_moe", decoder_sparse_step=1, **EXPERTS),
        "qwen3_moe": qwen3_moe(bf16, **SIZES | EXPERTS | {"head_dim": 16, "norm_topk_prob": True}),
        "deepseek_v2": deepseek_v2(
            bf16, **SIZES | EXPERTS | LATENT | GROUPS, topk_method="group_limited_greedy"
        ),
        "deepseek_v3": deepseek_v3(bf16, **SIZES | EXPERTS | LATENT | GROUPS, q_lora_rank=32),
        "glm4_moe": of_family("glm4_moe", **EXPERTS, first_k_dense_replace=0),
        "granitemoe": of_family("granitemoe", intermediate_size=16, num_local_experts=8),
        "olmoe": of_family("olmoe", intermediate_size=16, num_key_value_heads=2),
        "gpt_oss": of_family("gpt_oss", intermediate_size=16, rope_parameters=LONG_YARN),
        "granitemoehybrid": of_family(
            "granitemoehybrid",
            intermediate_size=16,
            num_local_experts=8,
            layer_types=["full_attention"] * LAYERS,
        ),
        "minimax_m2": of_family("minimax_m2", intermediate_size=16, num_local_experts=8),
    }
    for number, case in enumerate(table.values()):
        case.seed = 50_000 + 100 * number
    return table


def routers_of(model):
    """Each has as `more` what its block gives it besides the rows: a bias of the choice."""
    found = []
    for module in model.modules():
        router = getattr(module, "gate", getattr(module, "router", None))
        if type(router).__name__.lower().endswith("topkrouter"):
            bias = getattr(module, "e_score_correction_bias", None)
            router.more = () if bias is None else (bias,)
            found.append(router)
    return found


@torch.inference_mode()
def run(folder, tokens, dtype):
    """Logits [n, vocab], and for each router its logits [n, experts] and its choices [n, k]."""
    model = load_reference(folder, dtype)
    seen = []

    def keep(_router, _inputs, output):
        seen.append((output[0].float().reshape(len(tokens), -1), output[2].reshape(len(tokens), -1)))

    for router in routers_of(model):
        router.register_forward_hook(keep)
    logits = model(torch.tensor([tokens])).logits[0].float()
    return logits, [one[0] for one in seen], [one[1].sort()[0] for one in seen]


def choice_of_logits(router):
    """The router as a function of its logits."""
    alone = copy.deepcopy(router)
    alone.hidden_dim = alone.weight.shape[0]
    alone.weight = torch.nn.Parameter(torch.eye(alone.hidden_dim))
    if getattr(alone, "bias", None) is not None:
        alone.bias = torch.nn.Parameter(torch.zeros(alone.hidden_dim))
    return lambda logits: alone.forward(logits, *router.more)[2].sort()[0]


@torch.inference_mode()
def count_flips(folder, tokens):
    """Counts the tokens that take other experts where the rows of the first router are rounded to bf16."""
    model = load_reference(folder, torch.float32)
    flips = []

    def compare(router, inputs, output):
        rounded = router.forward(inputs[0].bfloat16().float(), *router.more)
        flips.append((rounded[2].sort()[0] != output[2].sort()[0]).any(-1).sum())

    routers_of(model)[0].register_forward_hook(compare)
    model(torch.tensor([tokens]))
    return int(flips[0])


@torch.inference_mode()
def firm_choices(folder, logits, choices, logits_bf16, choices_bf16):
    """[layers, n]"""
    generator = torch.Generator().manual_seed(0)
    firm, below = [], torch.ones(len(logits[0]), dtype=torch.bool)
    same = below.clone()
    for layer, router in enumerate(routers_of(load_reference(folder, torch.float32))):
        choose = choice_of_logits(router)
        assert torch.equal(choose(logits[layer]), choices[layer])
        error = (logits_bf16[layer] - logits[layer])[same].abs().max() if layer else FP32_ERROR
        kept = below.clone()
        for _ in range(DRAWS):
            signs = 2 * torch.randint(0, 2, logits[layer].shape, generator=generator) - 1
            kept &= (choose(logits[layer] + error * signs) == choices[layer]).all(-1)
        firm.append(kept)
        below = kept
        same &= (choices_bf16[layer] == choices[layer]).all(-1)
    return torch.stack(firm)


def text_results(folder, tokens):
    """None where a golden would test few choices."""
    logits, scores, choices = run(folder, tokens, torch.float32)
    logits_bf16, scores_bf16, choices_bf16 = run(folder, tokens, torch.bfloat16)
    assert len(choices) == LAYERS
    firm = firm_choices(folder, scores, choices, scores_bf16, choices_bf16)
    flips = [int((a != b).any(-1).sum()) for a, b in zip(choices, choices_bf16, strict=True)]
    same = (torch.stack(choices) == torch.stack(choices_bf16)).all(-1).all(0)
    everywhere = (firm[-1] & same).nonzero().flatten()
    if len(everywhere) < FIRM * len(tokens):
        return None
    step = max(1, len(everywhere) // KEPT)
    positions = everywhere.flip(0)[::step][:KEPT].flip(0)
    error = (logits_bf16 - logits)[everywhere].abs().max()
    n = len(tokens)
    print(
        f"{folder.name:12} {n:3} tokens: firm {[int(x.sum()) for x in firm]}, others in bf16 {flips}, "
        f"logits rms {logits.square().mean().sqrt():.2f}, bf16's error {error:.4f}"
    )
    return {
        f"tokens_{n}": torch.tensor(tokens, dtype=torch.int32),
        f"routes_{n}": torch.stack(choices).to(torch.uint8),
        f"firm_{n}": firm.to(torch.uint8),
        f"positions_{n}": positions.to(torch.int32),
        f"logits_{n}": logits[positions].contiguous(),
        f"bf16_max_abs_{n}": error.reshape(1),
    }


def mute_first_attention(file):
    tensors = load_file(file)
    tensors["model.layers.0.self_attn.o_proj.weight"].zero_()
    save_file(tensors, file, {"format": "pt"})


def write_mixture(case, folder):
    write_checkpoint(case, folder)
    mute_first_attention(folder / "model.safetensors")
    generator = torch.Generator().manual_seed(10_000 + case.seed)
    tensors = {}
    for length in reversed(LENGTHS):
        tokens = torch.randint(3, VOCAB, (length,), generator=generator).tolist()
        if length == max(LENGTHS) and count_flips(folder, tokens) < FLIPS:
            return False
        results = text_results(folder, tokens)
        if not results:
            return False
        tensors |= results
    save_file(tensors, folder / "golden.safetensors")
    return True


def main():
    write_cases(__doc__, cases(), ROOT / "tests/goldens/mixtures", write_mixture)


if __name__ == "__main__":
    main()
