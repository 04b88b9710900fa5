"""heddle.patch(model, generate="megakernel"): texts are transformers' own, and refusals are named."""

import copy
import gc
import pickle
import tempfile

import pytest
import torch
import transformers

import heddle
from heddle.patching import generate
from tiny import FAMILIES, tiny, tokens


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def pair(family="llama", **changes):
    plain, patched = tiny(family, **changes), tiny(family, **changes)
    heddle.patch(patched, norm=False, mlp=False, generate="megakernel")
    return plain, patched


def settings(ids, **more):
    return {"attention_mask": (ids != 0).long(), "max_new_tokens": 8, "do_sample": False, **more}


def padded():
    ids = tokens(3, 6)
    ids[1, :3] = 0
    return ids


def calls(model):
    return {row.reason: row.calls for row in heddle.patched(model).of("generate")}


@pytest.mark.parametrize("family", FAMILIES)
def test_texts_are_those_of_transformers(family):
    plain, patched = pair(family)
    ids = padded()
    free = plain.generate(ids, **settings(ids, eos_token_id=None))
    assert torch.equal(patched.generate(ids, **settings(ids, eos_token_id=None)), free)
    # One row ends before the others, and is filled up.
    ends = [int(free[0, 8]), int(free[2, 10])]
    expected = plain.generate(ids, **settings(ids, eos_token_id=ends))
    assert torch.equal(patched.generate(ids, **settings(ids, eos_token_id=ends)), expected)
    config = transformers.GenerationConfig(max_new_tokens=5, repetition_penalty=1.3, no_repeat_ngram_size=2)
    mask = settings(ids)["attention_mask"]
    whole = {"input_ids": ids[::2], "attention_mask": mask[::2]}
    expected = plain.generate(**whole, generation_config=config)
    got = patched.generate(**whole, generation_config=config)
    assert torch.equal(got, expected)
    expected = plain.generate(ids[:1], attention_mask=mask[:1], max_length=9, bad_words_ids=[[ends[0]]])
    assert torch.equal(
        patched.generate(ids[:1], attention_mask=mask[:1], max_length=9, bad_words_ids=[[ends[0]]]), expected
    )
    assert calls(patched) == {"": 4}


def test_weights_are_those_of_the_moment():
    plain, patched = pair()
    ids = tokens()
    seen = []
    for change in range(3):
        for model in (plain, patched):
            with torch.no_grad():
                if change == 1:  # a step of training
                    model.model.layers[0].mlp.down_proj.weight.mul_(-2)
                elif change == 2:  # another tensor
                    generator = torch.Generator().manual_seed(7)
                    made = torch.randn(model.lm_head.weight.shape, generator=generator)
                    model.lm_head.weight = torch.nn.Parameter(made)
        expected = plain.generate(ids, **settings(ids))
        assert torch.equal(patched.generate(ids, **settings(ids)), expected)
        engine = generate._ENGINES[patched]
        patched.generate(ids, **settings(ids))
        assert generate._ENGINES[patched] is engine  # nothing changed
        seen.append(expected.tolist())
    assert seen[0] != seen[1] != seen[2]
    assert calls(patched) == {"": 6}


def test_changed_weights_go_to_the_same_engine_without_files(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a temporary folder was made")

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    plain, patched = pair()
    ids = tokens()
    engines, seen = set(), []
    for _ in range(3):
        expected = plain.generate(ids, **settings(ids))
        assert torch.equal(patched.generate(ids, **settings(ids)), expected)
        engines.add(generate._ENGINES[patched].model)
        seen.append(expected.tolist())
        for model in (plain, patched):  # a fused optimizer raises no version of a tensor
            optimizer = torch.optim.AdamW(model.parameters(), lr=0.3, fused=True)
            model(ids, labels=ids).loss.backward()
            optimizer.step()
            model.zero_grad(set_to_none=True)
    assert len(engines) == 1
    assert seen[0] != seen[1] != seen[2]
    assert calls(patched) == {"": 3}
    for model in (plain, patched):  # weights that the engine refuses, and then does not
        with torch.no_grad():
            kept = model.model.norm.weight[3].item()
            model.model.norm.weight[3] = float("inf")
    assert torch.equal(patched.generate(ids, **settings(ids)), plain.generate(ids, **settings(ids)))
    assert any("weights must be finite" in reason for reason in calls(patched))
    for model in (plain, patched):
        with torch.no_grad():
            model.model.norm.weight[3] = kept
    assert torch.equal(patched.generate(ids, **settings(ids)), plain.generate(ids, **settings(ids)))
    assert calls(patched)[""] == 4


def test_a_tied_head_is_loaded():
    plain, patched = pair("llama", tie_word_embeddings=True)
    ids = tokens()
    assert torch.equal(patched.generate(ids, **settings(ids)), plain.generate(ids, **settings(ids)))
    assert calls(patched) == {"": 1}


def test_samples_follow_the_seed_of_torch():
    _, patched = pair()
    ids, made = tokens(), []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        made.append(patched.generate(ids, **settings(ids, do_sample=True, temperature=1.5, top_k=0)).tolist())
    assert made[0] == made[1] != made[2]
    rows = patched.generate(ids[:1].repeat(4, 1), max_new_tokens=8, do_sample=True, temperature=1.5, top_k=0)
    assert len({tuple(row) for row in rows.tolist()}) == 4  # as the rows of transformers
    likeliest = patched.generate(ids, **settings(ids, do_sample=True, top_k=1))
    assert torch.equal(likeliest, patched.generate(ids, **settings(ids)))
    assert calls(patched) == {"": 6}


def forbid(batch, ids):
    return [5, 6]


REFUSALS = {
    "num_beams is 2": {"num_beams": 2},
    "num_return_sequences is 2": {"num_return_sequences": 2, "do_sample": True},
    "output_scores is True": {"output_scores": True, "return_dict_in_generate": True},
    "return_dict_in_generate is True": {"return_dict_in_generate": True},
    "logits_processor is given": {"logits_processor": [lambda ids, scores: scores * 2]},
    "stopping_criteria is given": {"stopping_criteria": [lambda ids, scores: torch.ones(len(ids)).bool()]},
    "prefix_allowed_tokens_fn is given": {"prefix_allowed_tokens_fn": forbid},
    "guidance_scale is 1.5": {"guidance_scale": 1.5},
    "repetition_penalty counts padding too in transformers": {"repetition_penalty": 1.2},
    "neither max_new_tokens nor max_length is given": {"max_new_tokens": None},
    "position_ids is given": {"position_ids": torch.arange(6)[None].repeat(3, 1)},
}


@pytest.mark.parametrize("reason", REFUSALS)
def test_what_the_engine_does_not_do_runs_in_transformers(reason):
    plain, patched = pair()
    ids, made = padded(), []
    for model in (plain, patched):
        torch.manual_seed(1)
        output = model.generate(ids, **settings(ids, **REFUSALS[reason]))
        made.append(output if isinstance(output, torch.Tensor) else output.sequences)
    assert torch.equal(*made)
    assert calls(patched) == {"": 0, reason: 1}
    assert "transformers" in {row.path for row in heddle.patched(patched).of("generate")}


def test_prompts_that_are_no_tokens_run_in_transformers():
    plain, patched = pair()
    ids = tokens()
    embeddings = plain.model.embed_tokens(ids).detach()
    more = {"max_new_tokens": 3, "do_sample": False}
    assert torch.equal(
        patched.generate(inputs_embeds=embeddings, **more), plain.generate(inputs_embeds=embeddings, **more)
    )
    right = (torch.arange(12) < 9).long()[None].repeat(2, 1)
    assert torch.equal(
        patched.generate(ids, attention_mask=right, **more), plain.generate(ids, attention_mask=right, **more)
    )
    ids[0, 0] = 0
    assert torch.equal(patched.generate(ids, **more), plain.generate(ids, **more))
    assert calls(patched) == {
        "": 0,
        "inputs_embeds is given": 1,
        "the attention mask is not one of left padding": 1,
        "the prompt has the padding token, and there is no attention mask": 1,
    }


def test_an_assistant_runs_in_transformers():
    plain, patched = pair()
    ids = tokens(1)
    more = settings(ids, assistant_model=tiny("llama", seed=3))
    assert torch.equal(patched.generate(ids, **more), plain.generate(ids, **more))
    assert calls(patched)["assistant_model is given"] == 1


def test_models_that_were_changed_run_in_transformers():
    import peft

    plain, patched = pair()
    ids = tokens()
    adapters = peft.LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False)
    torch.manual_seed(1)
    wrapped = peft.get_peft_model(patched, adapters)
    wrapped.generate(ids, **settings(ids))
    (reason,) = [reason for reason in calls(wrapped) if reason]
    assert "peft.tuners.lora" in reason
    assert "adapter" in reason

    for change, expected in (
        (lambda model: model.train(), "training mode"),
        (lambda model: model.lm_head.register_forward_hook(lambda *_: None), "lm_head has a hook"),
    ):
        plain, patched = pair()
        for model in (plain, patched):
            change(model)
        assert torch.equal(patched.generate(ids, **settings(ids)), plain.generate(ids, **settings(ids)))
        assert any(expected in reason for reason in calls(patched))


def test_a_prompt_that_is_too_long_runs_in_transformers():
    plain, patched = pair(max_position_embeddings=16)
    ids = tokens()
    assert torch.equal(patched.generate(ids, **settings(ids)), plain.generate(ids, **settings(ids)))
    assert calls(patched) == {"": 0, "prompt and answer may have 20 tokens; the engine holds 16": 1}


def test_copies_pickles_and_unpatching():
    plain, patched = pair()
    ids = tokens()
    expected = plain.generate(ids, **settings(ids))
    assert torch.equal(patched.generate(ids, **settings(ids)), expected)
    assert type(patched).__name__ == "LlamaForCausalLM"
    for other in (copy.deepcopy(patched), pickle.loads(pickle.dumps(patched))):
        assert other not in generate._ENGINES
        assert torch.equal(other.generate(ids, **settings(ids)), expected)
        assert calls(other) == {"": 2}
        assert calls(patched) == {"": 1}
    engine = generate._ENGINES[patched].model
    heddle.unpatch(patched)
    assert patched not in generate._ENGINES
    with pytest.raises(heddle.Error):
        engine.tokenize("a")
    assert type(patched) is type(plain)
    assert torch.equal(patched.generate(ids, **settings(ids)), expected)
    count = len(generate._ENGINES)
    del other
    gc.collect()
    assert len(generate._ENGINES) < count or count == 0


def test_a_model_without_a_head_does_not_generate():
    model = tiny("llama").model
    (row,) = heddle.patch(model, generate="megakernel").of("generate")
    assert row.path == "transformers"
    assert "LlamaModel does not generate" in row.reason
