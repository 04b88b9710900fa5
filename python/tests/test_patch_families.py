"""Families whose parts heddle.patch finds by what they do: all numbers are those of transformers."""

import pytest
import torch
import transformers

import heddle
from tiny import gradients, take_every_size, tokens

SIZES = {
    "vocab_size": 128,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
EXPERTS = {
    **SIZES,
    "num_experts": 4,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "shared_expert_intermediate_size": 24,
}
SDPA = ("norm", "mlp", "attention", "cross_entropy")
NO_MLP = ("norm", "attention", "cross_entropy")  # experts are one tensor, or the activation is one kernel
# family: (what its config needs, the parts that run in heddle)
FAMILIES = {
    "llama4_text": ({**EXPERTS, "intermediate_size_mlp": 48, "no_rope_layers": [1, 0]}, SDPA),
    "ministral": (SIZES, SDPA),
    "ministral3": (SIZES, SDPA),
    "mixtral": (EXPERTS, NO_MLP),
    "qwen2_moe": (EXPERTS, SDPA),
    "qwen3_moe": (EXPERTS, NO_MLP),
    "gemma": (SIZES, SDPA),
    "phi": (SIZES, SDPA),
    "phi3": (SIZES, SDPA),
    "olmo": (SIZES, ("mlp", "attention", "cross_entropy")),  # its norm has no weight
    "olmo2": (SIZES, SDPA),
    "olmo3": (SIZES, SDPA),
    "granite": (SIZES, SDPA),
    "smollm3": (SIZES, SDPA),
    "glm4": (SIZES, SDPA),
    "cohere": (SIZES, SDPA),
    "cohere2": (SIZES, SDPA),
    "starcoder2": (SIZES, SDPA),
    "gpt_oss": (EXPERTS, ("norm", "cross_entropy")),  # its attention has sinks, which sdpa has not
}


def random_model(family, sizes):
    config = transformers.AutoConfig.for_model(family, **sizes)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = transformers.AutoModelForCausalLM.from_config(config)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(torch.randn_like(parameter) * (0.1 if parameter.dim() == 1 else 0.2))
    return model.eval()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_patched_model_computes_the_same(family, monkeypatch):
    take_every_size(monkeypatch)
    sizes, parts = FAMILIES[family]
    model, ids = random_model(family, sizes), tokens()
    with torch.no_grad():
        expected = model(ids).logits
    loss, wanted = gradients(model, ids)
    report = heddle.patch(model)
    assert all(row.reason for row in report if not row.is_heddle)
    with torch.no_grad():
        torch.testing.assert_close(model(ids).logits, expected, atol=2e-5, rtol=1e-4)
    got_loss, got = gradients(model, ids)
    assert abs(got_loss - loss) < 1e-5
    assert got.keys() == wanted.keys()
    for name, gradient in wanted.items():
        torch.testing.assert_close(got[name], gradient, atol=1e-5, rtol=1e-3, msg=name)
    ran = [part for part in SDPA if heddle.patched(model).calls(part)]
    assert ran == list(parts)
    heddle.unpatch(model)
    with torch.no_grad():
        assert torch.equal(model(ids).logits, expected)


def test_the_table_says_from_which_sizes_a_part_pays():
    sizes, _ = FAMILIES["smollm3"]
    report = heddle.patch(random_model("smollm3", sizes))
    assert {row.part: row.pays for row in report} == {
        "norm": "from any size; in training from 4,096 tokens",
        "mlp": "from 87,382 tokens in float32; in training from 87,382 tokens in float32",
        "attention": "from 8,192 tokens; in training from 16,384 tokens",
        "cross_entropy": "from 8,192 tokens",
    }
    assert all(row.pays in " ".join(repr(report).split()) for row in report)
