"""Weights of the caller: load(tensors=...), from_transformers, update_weights have the bits of files."""

import json
import threading
import weakref
from pathlib import Path

import numpy
import pytest
import torch
import transformers
from safetensors.torch import load_file

import heddle
from tiny import FAMILIES, tiny

FOLDER = Path(__file__).parents[2] / "models" / "storyteller"
OPTIONS = {"device": "cpu", "threads": 1, "max_context": 64}
IDS = [3, 17, 5, 99, 42, 7]


def saved(model, folder, **options):
    """The logits of the model by way of files."""
    model.save_pretrained(folder)
    with heddle.load(folder, **{**OPTIONS, **options}) as loaded:
        return loaded.logits(IDS)


def step(model, seed=0):
    """Other numbers, as an optimizer leaves them."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    torch.manual_seed(seed)
    ids = torch.randint(3, 128, (2, 9))
    model(ids, labels=ids).loss.backward()
    optimizer.step()
    model.zero_grad(set_to_none=True)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_in_memory_has_the_bits_of_its_files(family, tmp_path):
    model = tiny(family)
    with heddle.from_transformers(model, **OPTIONS) as live:
        assert numpy.array_equal(live.logits(IDS), saved(model, tmp_path / "a"))
        step(model)
        live.update_weights(model.state_dict())
        assert numpy.array_equal(live.logits(IDS), saved(model, tmp_path / "b"))
        assert "ForCausalLM" in repr(live) or "LMHead" in repr(live)


def test_names_in_memory_may_be_others_than_in_files():
    folder = FOLDER.parents[1] / "tests" / "goldens" / "models" / "nemotron_h-tiny"
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    assert not any(name.startswith("backbone.") for name in model.state_dict())
    with heddle.load(folder, **OPTIONS) as files, heddle.from_transformers(model, **OPTIONS) as live:
        assert numpy.array_equal(live.logits(IDS), files.logits(IDS))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_dtypes(dtype, tmp_path):
    model = tiny("llama", dtype)
    with heddle.from_transformers(model, **OPTIONS) as live:
        assert numpy.array_equal(live.logits(IDS), saved(model, tmp_path))


def test_tied_weights(tmp_path):
    model = tiny("llama", tie_word_embeddings=True)
    with heddle.from_transformers(model, **OPTIONS) as live:
        before = saved(model, tmp_path / "a")
        assert numpy.array_equal(live.logits(IDS), before)
        step(model)
        state = model.state_dict()
        assert state["lm_head.weight"].data_ptr() == state["model.embed_tokens.weight"].data_ptr()
        live.update_weights(state)
        after = saved(model, tmp_path / "b")
        assert numpy.array_equal(live.logits(IDS), after)
        # As they come from another process: two tensors with the same numbers.
        live.update_weights({name: tensor.clone() for name, tensor in state.items()})
        assert numpy.array_equal(live.logits(IDS), after)
        with pytest.raises(heddle.InvalidArgument, match=r"lm_head.weight is tied to the embedding"):
            live.update_weights({"lm_head.weight": state["lm_head.weight"] * 2})
        assert numpy.array_equal(live.logits(IDS), after)


def test_tensors_with_strides_and_numpy_arrays(tmp_path):
    model = tiny("llama")
    state = {}
    for number, (name, tensor) in enumerate(model.state_dict().items()):
        if tensor.dim() == 2 and number % 2:
            tensor = tensor.t().contiguous().t()
        elif tensor.dim() == 1:
            tensor = torch.stack([tensor, -tensor], 1)[:, 0]
        else:
            tensor = tensor.numpy()
        state[name] = tensor
    with heddle.load(tensors=state.items(), model_config=model.config, **OPTIONS) as live:
        assert numpy.array_equal(live.logits(IDS), saved(model, tmp_path))


def test_a_part_of_the_weights(tmp_path):
    model = tiny("llama")
    with heddle.from_transformers(model, **OPTIONS) as live:
        step(model)
        for name, tensor in model.state_dict().items():
            live.update_weights([(name, tensor)])
        assert numpy.array_equal(live.logits(IDS), saved(model, tmp_path))


def test_no_tensor_is_read_or_kept_after_a_call(tmp_path):
    model = tiny("llama")
    before = saved(model, tmp_path)
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    live = heddle.load(tensors=state, model_config=model.config.to_dict(), **OPTIONS)
    live.update_weights(state)
    for tensor in state.values():
        tensor.fill_(float("nan"))
    watched = [weakref.ref(tensor) for tensor in state.values()]
    del state, tensor
    assert all(watch() is None for watch in watched)
    assert numpy.array_equal(live.logits(IDS), before)
    live.close()


def refusals():
    norm, down = "model.norm.weight", "model.layers.0.mlp.down_proj.weight"
    return {
        "reads no tensor .*down.weight.*did you mean": lambda s: s.update(
            {down[:-14] + "down.weight": s.pop(down)}
        ),
        r"down_proj.weight is f32 \[96, 64\]; must be f32 \[64, 96\]": lambda s: s.update(
            {down: s[down].t()}
        ),
        r"norm.weight is bf16 \[64\]; must be f32 \[64\]": lambda s: s.update({norm: s[norm].bfloat16()}),
        r"element \(0, 5\) is nan; weights must be finite": lambda s: (
            s[down].view(-1)[5:6].fill_(float("nan"))
        ),
        "is a int; must be a tensor": lambda s: s.update({norm: 3}),
        "norm.weight cannot be read|norm.weight is": lambda s: s.update({norm: s[norm].to("meta")}),
        "torch.compile has put": lambda s: s.update({"_orig_mod." + norm: s.pop(norm)}),
        "a wrapper such as DDP has put": lambda s: s.update({"module." + norm: s.pop(norm)}),
        "a part of an adapter": lambda s: s.update({down[:-6] + "lora_A.default.weight": s[down]}),
        "must be a whole tensor in memory": lambda s: s.update({norm: s[norm].as_subclass(Part)}),
    }


class Part(torch.Tensor):
    pass


@pytest.mark.parametrize("said", refusals())
def test_a_refused_update_changes_nothing(said):
    model = tiny("llama")
    with heddle.from_transformers(model, **OPTIONS) as live:
        before = live.logits(IDS)
        step(model)
        state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        refusals()[said](state)
        with pytest.raises(heddle.InvalidArgument, match=said):
            live.update_weights(state)
        assert numpy.array_equal(live.logits(IDS), before)


def test_pairs_that_are_none():
    with heddle.from_transformers(tiny("llama"), **OPTIONS) as live:
        for wrong in (["model.norm.weight"], [("model.norm.weight",)], [(1, torch.ones(1))]):
            with pytest.raises(heddle.InvalidArgument, match="must be a state dict, or pairs"):
                live.update_weights(wrong)
        for wrong in (None, 5):
            with pytest.raises(heddle.InvalidArgument, match="must be a state dict, or pairs"):
                live.update_weights(wrong)
        live.update_weights({})
    with pytest.raises(heddle.InvalidArgument, match="model_config is a int"):
        heddle.load(tensors={}, model_config=5)
    with pytest.raises(heddle.InvalidArgument, match="a Linear is no model of transformers"):
        heddle.from_transformers(torch.nn.Linear(2, 2))


def test_parameters_and_compiled_models():
    model = tiny("llama")
    with heddle.from_transformers(torch.compile(model), **OPTIONS) as live:
        before = live.logits(IDS)
        live.update_weights(model.named_parameters())
        assert numpy.array_equal(live.logits(IDS), before)


def test_adapters_are_named():
    import peft

    adapters = peft.LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False)
    wrapped = peft.get_peft_model(tiny("llama"), adapters)
    with pytest.raises(heddle.InvalidArgument, match="merge_and_unload"):
        heddle.from_transformers(wrapped, **OPTIONS)
    merged = wrapped.merge_and_unload()
    with heddle.from_transformers(merged, **OPTIONS) as live:
        assert live.logits(IDS).shape == (len(IDS), 128)


def test_answers_that_have_begun_fail_and_later_ones_are_of_the_new_weights():
    model = tiny("llama")
    model.generation_config.eos_token_id = None
    asked = {"max_tokens": 20, "temperature": 0.0}
    with heddle.from_transformers(model, **OPTIONS) as live:
        old = [token.id for token in live.stream(IDS, reuse=True, **asked)]
        # With log-probabilities a launch makes one token, however fast it is.
        begun, waiting = live.stream(IDS, logprobs=0, **asked), live.stream(IDS, reuse=True, **asked)
        assert next(begun).id == old[0]
        with pytest.raises(heddle.InvalidArgument, match="reads no tensor"):
            live.update_weights({"other": torch.ones(2, 2)})
        assert next(begun).id == old[1]  # a refused update ends nothing
        step(model)
        live.update_weights(model.state_dict())
        with pytest.raises(heddle.InvalidArgument, match="weights were updated before this answer ended"):
            list(begun)
        new = [token.id for token in waiting]
        shared = live.stats["shared_tokens"]
        with heddle.from_transformers(model, **OPTIONS) as fresh:
            assert new == [token.id for token in fresh.stream(IDS, **asked)]
        assert new != old
        assert shared == 0


def test_tokens_of_many_prompts():
    model = tiny("llama")
    prompts = [IDS, IDS[:3], [9, 8]]
    asked = {"max_tokens": 6, "temperature": 0.0, "logprobs": 0}
    with heddle.from_transformers(model, **OPTIONS) as live:
        alone = [list(live.stream(prompt, **asked)) for prompt in prompts]
        together = live.generate_tokens(prompts, **asked)
        assert [[token.id for token in row] for row in together] == [
            [token.id for token in row] for row in alone
        ]
        assert live.generate_tokens(prompts[0], **asked) == alone[0]
        assert all(token.logprob <= 0 and token.text == "" for row in together for token in row)


def test_answers_to_equal_prompts_differ():
    asked = {"max_tokens": 8, "temperature": 1.0}

    def ids(answers):
        return [[token.id for token in answer] for answer in answers]

    with heddle.from_transformers(tiny("llama"), **OPTIONS) as live:
        assert len({tuple(row) for row in ids(live.generate_tokens([IDS] * 4, **asked))}) == 4
        seeded = ids(live.generate_tokens([IDS, [9, 8], IDS], seed=5, **asked))
        alone = [
            live.generate_tokens([prompt], seed=seed, **asked)
            for prompt, seed in ((IDS, 5), ([9, 8], 5), (IDS, 6))
        ]
        assert seeded == [ids(one)[0] for one in alone]
        greedy = ids(live.generate_tokens([IDS] * 2, **{**asked, "temperature": 0.0}))
        assert greedy[0] == greedy[1]


def test_updates_while_others_ask():
    model = tiny("llama")
    states = [{name: tensor.clone() for name, tensor in model.state_dict().items()}]
    step(model)
    states.append(model.state_dict())
    with heddle.from_transformers(model, **OPTIONS) as live:
        expected = []
        for state in reversed(states):
            live.update_weights(state)
            expected.append(live.logits(IDS).tobytes())
        seen, failures = [], []

        def ask():
            for _ in range(20):
                try:
                    seen.append(live.logits(IDS).tobytes())
                except heddle.InvalidArgument as error:
                    failures.append(str(error))

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        for turn in range(20):
            live.update_weights(states[turn % 2])
        for thread in threads:
            thread.join()
        assert set(seen) <= set(expected)  # never a mixture
        assert all("weights were updated" in failure for failure in failures)
        assert len(seen) + len(failures) == 60


def test_a_folder_with_weights_of_the_caller():
    state = load_file(FOLDER / "model.safetensors")
    with heddle.load(FOLDER, **OPTIONS) as folder, heddle.load(FOLDER, tensors=state, **OPTIONS) as live:
        text = folder.generate("Once upon a time", max_tokens=20)
        assert live.generate("Once upon a time", max_tokens=20) == text
        live.update_weights({name: tensor * 0.5 for name, tensor in state.items()})
        assert live.generate("Once upon a time", max_tokens=20) != text
        live.update_weights(state)
        assert live.generate("Once upon a time", max_tokens=20) == text
    with pytest.raises(heddle.InvalidArgument, match="there is no path"):
        heddle.load()
    with pytest.raises(heddle.InvalidArgument, match="model_config is for tensors in memory"):
        heddle.load(FOLDER, model_config=json.loads((FOLDER / "config.json").read_text()))


def test_a_tokenizer_and_settings_of_transformers(tmp_path):
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(FOLDER)
    tokenizer = transformers.AutoTokenizer.from_pretrained(FOLDER)
    with heddle.load(FOLDER, **OPTIONS) as folder:
        text = folder.generate("Once upon a time", max_tokens=20)
        for given in (tokenizer, FOLDER, str(FOLDER)):
            with heddle.from_transformers(model, tokenizer=given, **OPTIONS) as live:
                assert live.generate("Once upon a time", max_tokens=20) == text
    with heddle.from_transformers(model, **OPTIONS) as bare:
        with pytest.raises(heddle.Error, match="without a tokenizer prompts and answers are tokens"):
            bare.generate("Once upon a time")
        with pytest.raises(heddle.Error, match=r"chat template|tokenizer"):
            bare.chat("hello")
