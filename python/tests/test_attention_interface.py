"""transformers' attn_implementation="heddle" next to "eager": logits, gradients and generated tokens."""

import pytest
import torch
import transformers

import heddle
from heddle import attention
from tiny import _SIZES as SIZES
from tiny import tokens

LAYERS = ["sliding_attention", "full_attention"]
EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2, "layer_types": LAYERS, "sliding_window": 4}
attention.register_transformers()
CONFIGS = {
    "llama": transformers.LlamaConfig(**SIZES),
    "mistral": transformers.MistralConfig(**SIZES, sliding_window=4),
    "qwen3": transformers.Qwen3Config(**SIZES),
    "gemma2, with a cap": transformers.Gemma2Config(
        **SIZES, query_pre_attn_scalar=16, sliding_window=4, attn_logit_softcapping=5.0
    ),
    "gpt_oss, with sinks": transformers.GptOssConfig(**{**SIZES, **EXPERTS}),
}


def models(name):
    """Two equal models, with transformers' own attention and heddle's."""
    made = []
    for function in ("eager", "heddle"):
        torch.manual_seed(0)
        model = transformers.AutoModelForCausalLM.from_config(CONFIGS[name], attn_implementation=function)
        made.append(model)
        for parameter in made[-1].parameters():
            if parameter.dim() > 1:
                parameter.data.mul_(4)  # so that logits differ by more than rounding
    return made


@pytest.mark.parametrize("padding", ["none", "left"])
@pytest.mark.parametrize("name", CONFIGS)
def test_logits_and_gradients_are_those_of_eager(name, padding):
    ids = tokens(2, 11)
    mask = torch.ones_like(ids)
    if padding == "left":
        mask[1, :4] = 0
    results = []
    for model in models(name):
        logits = model(ids, attention_mask=mask).logits * mask[..., None]
        (logits.float() ** 2).mean().backward()
        results.append((logits, *(each.grad for each in model.parameters() if each.grad is not None)))
    assert len(results[0]) == len(results[1])
    for wanted, made in zip(*results, strict=True):
        assert (made - wanted).abs().max() <= 2e-4 * wanted.abs().max()


@pytest.mark.parametrize("name", CONFIGS)
def test_generated_tokens_are_those_of_eager(name):
    ids = tokens(2, 7)
    mask = torch.ones_like(ids)
    mask[1, :3] = 0
    given = {"attention_mask": mask, "max_new_tokens": 6, "do_sample": False}
    wanted, made = (model.eval().generate(ids, **given) for model in models(name))
    assert torch.equal(made, wanted)


def test_generating_compiles_nothing_for_each_length():
    model = models("mistral")[1].eval()
    model.generate(tokens(1, 5), max_new_tokens=2, do_sample=False)
    before = attention.compilations()
    model.generate(tokens(1, 6), max_new_tokens=12, do_sample=False)
    assert attention.compilations() == before


def test_a_static_cache_and_a_mask_of_ones_own():
    eager, model = (each.eval() for each in models("llama"))
    ids = tokens(1, 6)
    given = {
        "max_new_tokens": 5,
        "do_sample": False,
        "cache_implementation": "static",
        "disable_compile": True,
    }
    assert torch.equal(model.generate(ids, **given), eager.generate(ids, **given))
    seen = torch.ones(6, 6, dtype=torch.bool).tril()[None, None].clone()
    seen[..., 5, 2] = False
    wanted = eager(ids, attention_mask=torch.zeros(seen.shape).masked_fill(~seen, -1e30)).logits
    torch.testing.assert_close(model(ids, attention_mask=seen).logits, wanted, rtol=1e-4, atol=1e-4)


def test_packed_sequences():
    eager, model = models("qwen3")
    ids, places = tokens(1, 9), torch.tensor([[0, 1, 2, 3, 0, 1, 2, 3, 4]])
    wanted, made = (each.eval()(ids, position_ids=places).logits for each in (eager, model))
    torch.testing.assert_close(made, wanted, rtol=1e-4, atol=1e-4)


def test_what_a_call_may_not_have_is_named():
    torch.manual_seed(0)
    config = transformers.LlamaConfig(**SIZES, attention_dropout=0.5)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="heddle").train()
    with pytest.raises(heddle.Unsupported, match=r"dropout 0\.5; set attention_dropout to 0"):
        model(tokens(1, 5))


def test_a_patched_model_keeps_what_it_was_given():
    model = models("llama")[1].eval()
    ids = tokens()
    wanted = model(ids).logits
    heddle.patch(model)
    torch.testing.assert_close(model(ids).logits, wanted, rtol=1e-4, atol=1e-4)
    heddle.unpatch(model)
    assert type(model.config._attn_implementation) is str
    assert torch.equal(model(ids).logits, wanted)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU here")
def test_on_a_gpu():
    ids = tokens(2, 150).cuda()
    mask = torch.ones_like(ids)
    mask[1, :40] = 0
    for name in ("mistral", "gpt_oss, with sinks"):
        eager, model = (each.cuda().eval() for each in models(name))
        wanted = eager(ids, attention_mask=mask).logits[mask.bool()]
        torch.testing.assert_close(
            model(ids, attention_mask=mask).logits[mask.bool()], wanted, rtol=1e-3, atol=1e-3
        )
        errors = []
        for each in (eager, model):
            halves = each.bfloat16()(ids, attention_mask=mask).logits[mask.bool()]
            errors.append((halves - wanted).norm())
        assert errors[1] < 1.2 * errors[0]
