"""Models of transformers, and torch.compile, in context_parallel, whose ranks are threads."""

import copy

import pytest
import torch
import transformers
from torch.nn.attention import flex_attention as flex_of_torch
from torch.nn.functional import scaled_dot_product_attention

import heddle
import ranks
from heddle import attention

attention.register_transformers()
SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "vocab_size": 50}
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2}
IDS = torch.arange(37).mul(7).remainder(50).unsqueeze(0)


def model_of(implementation):
    torch.manual_seed(0)
    config = transformers.MistralConfig(
        **SIZES, **HEADS, sliding_window=9, attn_implementation=implementation
    )
    return transformers.MistralForCausalLM(config)


def run(model, **mask):
    """Logits of all positions, and the gradient of one parameter, on each rank."""

    def run_one(group):
        own, ids, positions = copy.deepcopy(model), IDS.clone(), torch.arange(37).unsqueeze(0)
        with attention.context_parallel(group, buffers=[ids, positions], buffer_seq_dims=[1, 1]) as parallel:
            made = own(ids, position_ids=positions, use_cache=False, **mask).logits
            made.sin().sum().backward()
            return parallel.unshard(made, 1), own.model.layers[0].self_attn.k_proj.weight.grad

    return ranks.run(2, run_one)


@pytest.mark.parametrize("patched", [False, True])
def test_a_model_of_transformers(patched):
    model = model_of("heddle_cp")
    if patched:
        heddle.patch(model)
    alone = model_of("sdpa")
    logits = alone(IDS, use_cache=False).logits
    logits.sin().sum().backward()
    gradient = alone.model.layers[0].self_attn.k_proj.weight.grad
    made = run(model)
    for own in made:
        torch.testing.assert_close(own[0], logits, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(made[0][1] + made[1][1], gradient, rtol=1e-4, atol=1e-5)


def patched_model():
    model = model_of("sdpa")
    heddle.patch(model)
    return model


REFUSED = {
    "masks of heddle": (lambda: model_of("heddle"), {}, "heddle_cp"),
    "blocks of heddle": (lambda: model_of("heddle_sparse"), {}, "heddle_cp"),
    "masks of torch": (patched_model, {}, "attn_mask is given"),
    "padding": (lambda: model_of("heddle_cp"), {"attention_mask": torch.zeros(1, 19)}, "has padding"),
}


@pytest.mark.parametrize(("make", "mask", "said"), REFUSED.values(), ids=REFUSED)
def test_what_knows_nothing_of_other_ranks_is_refused(make, mask, said):
    made = run(make(), **mask)
    assert all(isinstance(each, heddle.Unsupported) and said in str(each) for each in made), made


def test_heddle_cp_is_for_the_context():
    with pytest.raises(heddle.InvalidArgument, match="inside of context_parallel"):
        model_of("heddle_cp")(IDS)


def in_context(function):
    def run_one(group):
        with attention.context_parallel(group):
            return function()

    return ranks.run(1, run_one)[0]


def test_flex_attention_of_torch_is_refused(monkeypatch):
    monkeypatch.setattr(flex_of_torch, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True)
    q = torch.randn(1, 2, 8, 16)
    made = in_context(lambda: flex_of_torch.flex_attention(q, q, q))
    assert isinstance(made, heddle.Unsupported), made


def test_a_compiled_function_breaks_its_graph():
    q = torch.randn(1, 2, 8, 16)

    def function(q):
        return scaled_dot_product_attention(q * 2, q, q, is_causal=True) + 1

    made = in_context(lambda: torch.compile(function, backend="eager")(q))
    torch.testing.assert_close(made, function(q))
    torch.compiler.reset()
    made = in_context(lambda: torch.compile(function, backend="eager", fullgraph=True)(q))
    assert "it sends tensors between processes" in str(made)
