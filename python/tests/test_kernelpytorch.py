"""heddle.kernelpytorch: layers and optimizers of its names do what they are called, and wrong use is refused.
The snippets of docs/coming_from.md are run by test_docs."""

import math

import pytest
import torch

import heddle
from heddle import kernelpytorch as kp
from tiny import tiny, tokens


def exact(layer, x, seen):
    """Attention with the layer's projections over the pairs of `seen`, in fp64."""
    q, k, v = (
        (x.double() @ layer.qkv_proj.weight.double().t()).unflatten(-1, (3, 4, -1)).permute(2, 0, 3, 1, 4)
    )
    scores = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(~seen, -math.inf)
    return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2) @ layer.o_proj.weight.double().t()


i, j = torch.arange(150)[:, None], torch.arange(150)
IDS = torch.arange(150) // 40
LAYERS = {
    "ring": (lambda: kp.create_ring_attention(32, 4, 1_000_000), i >= j),
    "sparse": (lambda: kp.create_sparse_attention(32, 4), i >= j),
    "causal": (lambda: kp.create_advanced_flex_attention(32, 4), i >= j),
    "window": (
        lambda: kp.create_advanced_flex_attention(32, 4, "sliding_window", width=9),
        (i >= j) & (i - j <= 9),
    ),
    "documents": (
        lambda: kp.create_advanced_flex_attention(32, 4, "documents", ids=IDS),
        (i >= j) & (IDS[:, None] == IDS),
    ),
    "prefix": (lambda: kp.create_advanced_flex_attention(32, 4, "prefix", length=20), (i >= j) | (j < 20)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_of_attention_are_what_they_are_called(name):
    make, seen = LAYERS[name]
    layer, x = make(), torch.randn(2, 150, 32)
    with torch.no_grad():
        assert (layer(x) - exact(layer, x, seen)).abs().max() < 1e-5


def test_a_model_with_fused_decoding_gives_what_it_gave():
    model, ids = tiny("llama"), tokens(1, 5)
    wanted = model.generate(ids, max_new_tokens=4, do_sample=False)
    fused = kp.create_unified_attention_fusion(model)
    assert torch.equal(fused.generate(ids, max_new_tokens=4, do_sample=False), wanted)
    assert heddle.patched(model).calls("generate") == 1


@pytest.mark.parametrize(("limit", "dtype"), [(None, "fp32"), (5e-6, "bf16"), (3e-6, "int8")])
def test_states_fit_the_limit_of_the_host(limit, dtype):
    model = torch.nn.Linear(32, 31)
    base = torch.optim.AdamW(
        [{"params": model.weight, "lr": 0.5}, {"params": model.bias, "weight_decay": 0.0}]
    )
    made = kp.DeepOptimizerStates(base, model, kp.MemoryConfig(limit and limit * 1.2))
    assert made.state_dtype == dtype
    assert [group["lr"] for group in made.param_groups] == [0.5, 1e-3]
    assert made.param_groups[1]["weight_decay"] == 0.0


def test_formats_of_fp8_are_gradients_of_recipes():
    model = torch.nn.Sequential(torch.nn.Linear(4096, 4096, device="meta"))
    assert kp.convert_model_to_fp8(model)[0].float8.gradients == "e5m2"
    both = (kp.FP8Format.E4M3, kp.FP8Format.E4M3)
    model = kp.convert_model_to_fp8(torch.nn.Linear(4096, 4096, device="meta"), *both)
    assert kp.create_fp8_trainer(model).model.float8.gradients == "e4m3"
    with pytest.raises(heddle.Unsupported, match="must be E4M3 or HYBRID"):
        kp.create_fp8_trainer(model=torch.nn.Linear(16, 16), forward_format=kp.FP8Format.E5M2)


def test_structured_sparsity_prunes_a_model():
    model = kp.StructuredSparsity24(sparsity_ratio=0.5).apply_to_model(torch.nn.Linear(16, 8))
    assert ((model.weight == 0).unflatten(-1, (-1, 4)).sum(-1) == 2).all()


def test_fp4_quantises_a_model():
    model = kp.FP4Quantizer(format_type="fp4").quantize_module(torch.nn.Sequential(torch.nn.Linear(32, 8)))
    assert model[0].weight_packed.numel() == 32 * 8 // 2
    assert str(kp.FP4Quantizer("mxfp4", 32).format) == "mxfp4"


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        (
            lambda: kp.DynamicMemoryPool,
            heddle.Unsupported,
            "DynamicMemoryPool: heddle lacks a memory pool",
        ),
        (
            lambda: kp.FP4Quantizer("nvfp4", 64),
            heddle.InvalidArgument,
            "format_type is 'nvfp4' and block_size 64; must be fp4, nvfp4 with blocks of 16",
        ),
        (
            lambda: kp.StructuredSparsity24(0.9),
            heddle.InvalidArgument,
            "sparsity_ratio is 0.9, block_size 4 and magnitude_based True; must be 0.5, 4 and True",
        ),
        (lambda: kp.create_magic, heddle.UnknownName, "has no create_magic"),
        (lambda: kp.create_ring_attention(30, 4, 9), heddle.InvalidArgument, "d_model is 30 and num_heads 4"),
        (
            lambda: kp.create_ring_attention(32, 4, 9)(torch.randn(1, 10, 32)),
            heddle.InvalidArgument,
            "10 positions on each of 1 ranks; must be at most 9",
        ),
        (
            lambda: kp.create_context_parallel_attention(32, 4, 2)(torch.randn(1, 10, 32)),
            heddle.InvalidArgument,
            "there are 1 processes; must be context_parallel_size, 2",
        ),
        (
            lambda: kp.create_advanced_flex_attention(32, 4, "flashlight"),
            heddle.InvalidArgument,
            "pattern is 'flashlight'; must be one of causal",
        ),
        (
            lambda: kp.DeepOptimizerStates(torch.optim.SGD([torch.zeros(1)])),
            heddle.Unsupported,
            "optimizer is SGD; must be a torch.optim.AdamW",
        ),
        (
            lambda: kp.DeepOptimizerStates(torch.optim.AdamW([torch.zeros(99)]), None, kp.MemoryConfig(1e-9)),
            heddle.InvalidArgument,
            "cpu_memory_limit_gb is 1e-09",
        ),
    ],
)
def test_wrong_use_is_refused(wrong, error, said):
    with pytest.raises(error, match=said):
        wrong()
