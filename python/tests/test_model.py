"""Models from Python: the program's texts, from any thread, and a process that survives what goes wrong."""

import inspect
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy
import pytest

import heddle
from heddle import model as model_part

FOLDER = Path(__file__).parents[2] / "models" / "storyteller"
PROGRAM = Path(heddle.__file__).absolute().parents[2] / "heddle"  # the module's own build
STORIES = json.loads((FOLDER / "expected.json").read_text())["stories"]
PROMPT = "Once upon a time"
FORM = Path(__file__).parent / "form.jinja"

# Settings by their names here; as flags they have dashes.
SETTINGS = [
    {"max_tokens": 60},
    {"max_tokens": 60, "temperature": 0.8, "seed": 7},
    {"max_tokens": 40, "temperature": 1.5, "top_k": 20, "seed": 11},
    {"max_tokens": 40, "temperature": 1.0, "top_p": 0.9, "seed": 3},
    {"max_tokens": 40, "temperature": 1.0, "min_p": 0.05, "repetition_penalty": 1.3, "seed": 4},
    {"max_tokens": 40, "temperature": 1.2, "typical_p": 0.8, "seed": 5},
    {"max_tokens": 200, "stop": ["village", "king"]},
    {"max_tokens": 40, "logprobs": 2},
    {"max_tokens": 60, "temperature": 20.0, "seed": 1},
]


@pytest.fixture(scope="module")
def model():
    with heddle.load(FOLDER, device="cpu") as made:
        yield made


def by_program(prompt, settings, *more):
    if not PROGRAM.exists():
        pytest.skip(f"{PROGRAM} is not there: the package is not one of a build")
    command = [PROGRAM, "generate", FOLDER, "--executor", "threads", "--json", "--prompt", prompt, *more]
    for name, value in settings.items():
        for each in value if isinstance(value, list) else [value]:
            command += [f"--{name.replace('_', '-')}", str(each)]
    made = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert made.returncode == 0, made.stderr
    return json.loads(made.stdout)


def test_a_random_text_has_a_random_seed(model):
    random = {"max_tokens": 24, "temperature": 1.0}
    texts = {model.generate("Once", **random) for _ in range(4)}
    assert len(texts) > 1
    assert len({model.generate("Once", seed=3, **random) for _ in range(2)}) == 1


@pytest.fixture
def hub_cache(tmp_path, monkeypatch):
    """A cache of the hub with the storyteller as teller/of-stories."""
    root = tmp_path / "models--teller--of-stories"
    (root / "snapshots").mkdir(parents=True)
    (root / "snapshots" / "0123456789ab").symlink_to(FOLDER)
    (root / "refs").mkdir()
    (root / "refs" / "main").write_text("0123456789ab")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    return root


def test_a_name_of_the_hub_is_a_snapshot_in_its_cache(model, hub_cache, caplog):
    with caplog.at_level("INFO", logger="heddle"):
        for given in ("teller/of-stories", hub_cache):
            with heddle.load(given, device="cpu") as found:
                assert found.generate(PROMPT, max_tokens=8) == model.generate(PROMPT, max_tokens=8)
    assert caplog.text.count("teller/of-stories is the snapshot 0123456789ab") == 2
    with pytest.raises(heddle.Error, match="`hf download teller/of-facts --local-dir of-facts`"):
        heddle.load("teller/of-facts")


def test_stories_are_those_of_transformers(model):
    made = model.generate([story["prompt"] for story in STORIES], max_tokens=150)
    for text, story in zip(made, STORIES, strict=True):
        assert text
        assert story["text"].startswith(text)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("prompt", [PROMPT, "17 + 25 ="])
def test_the_text_is_the_programs(model, settings, prompt):
    expected = by_program(prompt, settings)
    assert model.generate(prompt, **settings) == expected["text"]
    tokens = list(model.stream(prompt, **settings))
    assert "".join(token.text for token in tokens) == expected["text"]
    reasons = [token.finish_reason for token in tokens]
    assert reasons == [None] * (len(tokens) - 1) + [expected["finish_reason"]]
    ended = expected["finish_reason"] == "eos"  # the program leaves out the token that ended the text
    assert [token.id for token in tokens][: len(tokens) - ended] == expected["tokens"]
    assert [token.index for token in tokens] == list(range(len(tokens)))
    for token, known in zip(tokens, expected.get("logprobs", []), strict=False):
        assert token.logprob == pytest.approx(known["logprob"], abs=1e-6)
        assert [each[0] for each in token.top] == [each[0] for each in known["top"]]
    assert (tokens[0].logprob is None) == ("logprobs" not in settings)


def test_characters_stay_whole(model):
    settings = {"max_tokens": 200, "temperature": 50.0, "seed": 2}
    tokens = list(model.stream(PROMPT, **settings))
    assert any(len(token.text.encode()) > len(token.text) for token in tokens), "a character of many bytes"
    assert any(not token.text for token in tokens), "a part of a character"
    assert "".join(token.text for token in tokens) == model.generate(PROMPT, **settings)


def test_many_prompts_give_what_each_gives_alone(model):
    # Sums, of whose answers the model is sure: steps of another size round in other places.
    prompts = ["17 + 25 =", "1 + 45 =", model.tokenize("27 + 45 ="), "33 + 12 =", "60 + 30 ="]
    alone = [model.generate(prompt) for prompt in prompts]
    before = model.stats
    assert model.generate(prompts) == alone
    assert alone[:2] == [" 42.", " 46."]
    assert model.stats["steps"] - before["steps"] < 10
    with heddle.load(FOLDER, device="cpu", max_sequences=2) as narrow:
        assert narrow.generate(prompts) == alone
        assert narrow.stats["most_sequences"] == 2
    assert model.generate([]) == []
    for tokens in (numpy.array(prompts[2]), tuple(prompts[2]), list(numpy.array(prompts[2]))):
        assert model.generate(tokens) == alone[2]


def test_a_text_depends_on_nothing_that_was_asked_before(model):
    prompt = STORIES[0]["text"][:900]
    expected = by_program(prompt, {"max_tokens": 60, "temperature": 1.0, "seed": 9})["text"]
    before = model.stats["shared_tokens"]
    for _ in range(2):
        assert model.generate(prompt, max_tokens=60, temperature=1.0, seed=9) == expected
    assert model.stats["shared_tokens"] == before
    model.generate(prompt, max_tokens=1, reuse=True)
    assert model.stats["shared_tokens"] > before + 100


def test_threads_give_what_each_gives_alone(model):
    work = [(PROMPT, {"max_tokens": 60, "temperature": 0.7, "seed": seed}) for seed in range(6)]
    alone = [model.generate(prompt, **settings) for prompt, settings in work]
    made = [None] * len(work)

    def answer(i):
        prompt, settings = work[i]
        if i % 2:
            made[i] = model.generate(prompt, **settings)
        else:
            made[i] = "".join(token.text for token in model.stream(prompt, **settings))

    threads = [threading.Thread(target=answer, args=(i,)) for i in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert made == alone


def test_streams_may_alternate(model):
    expected = [token.id for token in model.stream(PROMPT, max_tokens=20)]
    pairs = zip(model.stream(PROMPT, max_tokens=20), model.stream(PROMPT, max_tokens=20), strict=True)
    assert [(one.id, other.id) for one, other in pairs] == [(each, each) for each in expected]


def test_python_runs_while_the_model_does(model):
    before = model.stats["new_tokens"]
    thread = threading.Thread(target=model.generate, args=(PROMPT,), kwargs={"max_tokens": 500})
    thread.start()
    seen = set()
    while thread.is_alive():
        seen.add(model.stats["new_tokens"] - before)
    assert len(seen) > 10


def tokens_of(model):
    return model.stats["new_tokens"] + model.stats["prompt_tokens"]


def wait_for_tokens(model, count):
    start = tokens_of(model)
    deadline = time.monotonic() + 300
    while tokens_of(model) < start + count:
        assert time.monotonic() < deadline, "no token for minutes"
        time.sleep(0.001)


@pytest.mark.parametrize("way", ["generate", "stream", "logits"])
def test_ctrl_c_ends_the_answer_and_not_the_model(model, way):
    expected = model.generate(PROMPT, max_tokens=30)
    work = {
        "generate": lambda: model.generate([PROMPT] * 16, max_tokens=700, temperature=1.0, eos_token_id=3),
        "stream": lambda: [
            list(model.stream(PROMPT, max_tokens=700, temperature=1.0, eos_token_id=3)) for _ in range(20)
        ],
        "logits": lambda: model.logits([[2] * 700] * 60),
    }[way]

    def press():
        wait_for_tokens(model, 20)
        os.kill(os.getpid(), signal.SIGINT)

    before = tokens_of(model)
    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        work()
    thread.join()
    most = {"generate": 16 * 700, "stream": 700, "logits": 60 * 700}[way]  # what one call would have made
    assert tokens_of(model) - before < most * 0.8
    assert model.generate(PROMPT, max_tokens=30) == expected
    assert is_idle(model)


def write_wide_model(folder):
    """A Llama of zeros whose step of 512 rows takes a core about a second. Its file takes no blocks."""
    config = json.loads((FOLDER / "config.json").read_text())
    wide, inner, vocab = 512, 12288, config["vocab_size"]
    config |= {"hidden_size": wide, "intermediate_size": inner, "num_hidden_layers": 3}
    config |= {
        "num_attention_heads": 8,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "tie_word_embeddings": True,
    }
    shapes = {"model.embed_tokens.weight": [vocab, wide], "model.norm.weight": [wide]}
    for layer in range(3):
        for name in ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"):
            shapes[f"model.layers.{layer}.{name}.weight"] = [wide, wide]
        for name in ("gate_proj", "up_proj"):
            shapes[f"model.layers.{layer}.mlp.{name}.weight"] = [inner, wide]
        shapes[f"model.layers.{layer}.mlp.down_proj.weight"] = [wide, inner]
        for name in ("input_layernorm", "post_attention_layernorm"):
            shapes[f"model.layers.{layer}.{name}.weight"] = [wide]
    head, at = {}, 0
    for name, shape in shapes.items():
        size = 2 * int(numpy.prod(shape))
        head[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(head).encode()
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_bytes((FOLDER / "tokenizer.json").read_bytes())
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + at)


def press_soon(seconds):
    timer = threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    return timer


def ends_early(model, work):
    """True if a key that is pressed during the work's only step ends it. A busy machine may be late once."""
    model.generate([5], max_tokens=1)
    begin = time.monotonic()
    work()
    took = time.monotonic() - begin
    model.generate([5], max_tokens=1)  # so that the cache does not hold the work's tokens
    before = model.stats["steps"]
    timer = press_soon(took / 3)

    def wait_for_key():
        work()
        timer.join()  # a step that was faster than the key
        time.sleep(60)

    with pytest.raises(KeyboardInterrupt):
        wait_for_key()
    timer.join()
    return model.stats["steps"] == before


def test_ctrl_c_ends_a_long_step(tmp_path):
    write_wide_model(tmp_path)
    prompt = [5] * 512  # one step
    with heddle.load(tmp_path, device="cpu", threads=1) as wide:
        for work in (
            lambda: wide.generate(prompt, max_tokens=1),
            lambda: list(wide.stream(prompt, max_tokens=1)),
            lambda: wide.logits(prompt),
        ):
            assert any(ends_early(wide, work) for _ in range(5)), "the step ran to its end each time"
        assert wide.logits([5, 6]).shape == (2, wide.stats["vocab"])
        assert heddle.ops.softmax(numpy.zeros((1, 4), "f")).tolist() == [[0.25] * 4]


def is_idle(model):
    """Nothing is computed any more: what was asked for was let go."""
    deadline = time.monotonic() + 300
    while True:
        before = model.stats["steps"]
        time.sleep(0.2)
        if model.stats["steps"] == before:
            return True
        assert time.monotonic() < deadline


def test_a_stream_may_be_left(model):
    before = model.stats["new_tokens"]
    for token in model.stream(PROMPT, max_tokens=750, temperature=1.0, eos_token_id=3):
        if token.index == 5:
            break
    assert is_idle(model)
    assert 6 <= model.stats["new_tokens"] - before < 750
    model.stream(PROMPT, max_tokens=750)  # never begun
    assert is_idle(model)


def test_a_stream_takes_several_steps_in_a_launch():
    settings = {"max_tokens": 200, "temperature": 1.0, "seed": 2, "eos_token_id": 3}
    with heddle.load(FOLDER, device="cpu", threads=1) as model:
        text = model.generate(PROMPT, **settings)
        # As many as a moment holds. A busy machine makes that few, most of all where threads wait for others.
        for _ in range(20):
            before = model.stats
            assert "".join(token.text for token in model.stream(PROMPT, **settings)) == text
            made = {name: model.stats[name] - before[name] for name in ("steps", "launches")}
            assert made["steps"] >= 200
            if made["launches"] < made["steps"] * 0.6:
                return
    raise AssertionError(made)


def test_logits_are_those_that_tokens_are_chosen_by(model):
    tokens = list(model.stream(PROMPT, max_tokens=12, logprobs=0))
    prompt = model.tokenize(PROMPT)
    made = model.logits(prompt + [token.id for token in tokens])
    assert made.dtype == numpy.float32
    assert made.shape == (len(prompt) + len(tokens), model.stats["vocab"])
    rows = made[len(prompt) - 1 : -1].astype(numpy.float64)
    assert rows.argmax(-1).tolist() == [token.id for token in tokens]
    sums = numpy.log(numpy.exp(rows - rows.max(-1, keepdims=True)).sum(-1)) + rows.max(-1)
    wanted = rows[range(len(tokens)), [token.id for token in tokens]] - sums
    assert numpy.allclose(wanted, [token.logprob for token in tokens], atol=0.02)  # pages hold bf16
    assert model.logits([5] * model.stats["max_context"]).shape[0] == model.stats["max_context"]


def by_program_logits(tokens, chunk, out):
    if not PROGRAM.exists():
        pytest.skip(f"{PROGRAM} is not there: the package is not one of a build")
    command = [PROGRAM, "logits", FOLDER, "--executor", "threads", "--chunk", str(chunk), "--out", out]
    subprocess.run([*command, "--tokens", ",".join(map(str, tokens))], timeout=300, check=True)
    made = out.read_bytes()
    head = int.from_bytes(made[:8], "little")
    return numpy.frombuffer(made[8 + head :], numpy.float32).reshape(len(tokens), -1)


# Pages hold bf16, and each step rounds other sums: an eighth of a unit of logits that reach 30.
ROUNDING = 0.25


def test_logits_are_the_programs(model, tmp_path):
    tokens = model.tokenize(STORIES[1]["text"])[:200]
    before = model.stats
    made = model.logits(tokens)
    assert model.stats["steps"] == before["steps"] + 1
    assert model.stats["prompt_tokens"] == before["prompt_tokens"] + 200
    assert numpy.array_equal(made, by_program_logits(tokens, 512, tmp_path / "whole.safetensors"))
    by_token = by_program_logits(tokens[:40], 1, tmp_path / "by_token.safetensors")
    assert numpy.abs(made[:40] - by_token).max() < ROUNDING


def test_logits_of_prompts_share_steps(model):
    text = model.tokenize(STORIES[1]["text"])
    prompts = [text[: 3 + 11 * i] for i in range(18)] + [[5] * model.stats["max_context"]]
    alone = [model.logits(prompt) for prompt in prompts]
    before = model.stats
    made = model.logits(prompts)
    tokens = sum(map(len, prompts))
    assert model.stats["steps"] - before["steps"] <= tokens // 512 + 3
    assert model.stats["prompt_tokens"] - before["prompt_tokens"] == tokens
    for one, other in zip(alone, made, strict=True):
        assert one.shape == other.shape
        assert numpy.abs(one - other).max() < ROUNDING


def test_logits_go_to_other_libraries(model):
    torch = pytest.importorskip("torch", reason="there is no torch")
    made = model_part.Logits(*model._made.logits([[1, 2, 3]]))
    tensor = torch.from_dlpack(made)
    assert tensor.shape == made.shape
    assert numpy.array_equal(tensor.numpy(), model.logits([1, 2, 3]))


def test_tokens_and_texts(model):
    tokens = model.tokenize("Hello, Ñandú 東京")
    assert model.detokenize(tokens, skip_special=True) == "Hello, Ñandú 東京"
    assert tokens[1:] == model.tokenize("Hello, Ñandú 東京", special=False)


def test_reasoning_is_not_the_answer(model, tmp_path):
    # The template opens the reasoning, and the model never ends it.
    form = tmp_path / "thinking.jinja"
    form.write_text("{{ messages[-1].content }}<think>\n{# </think> #}")
    assert model.chat("Once", template=form, max_tokens=8) == ""
    tokens = list(model.chat("Once", template=form, max_tokens=8, stream=True))
    assert "".join(token.text for token in tokens) == ""
    assert "".join(token.reasoning for token in tokens).strip()
    assert not any(token.reasoning for token in model.stream("Once<think>\n", max_tokens=8))


def test_the_shipped_model_talks(model, tmp_path):
    assert model.chat("What is 27+45?") == " 72."
    silent = tmp_path / "silent"
    silent.mkdir()
    for file in FOLDER.iterdir():
        if file.name != "chat_template.jinja":
            (silent / file.name).symlink_to(file)
    with heddle.load(silent, device="cpu") as made, pytest.raises(heddle.Error, match="template=FILE"):
        made.chat("a")


def test_a_conversation_is_the_programs(model):
    made = model.chat(PROMPT, template=FORM, max_tokens=30)
    assert made == by_program(PROMPT, {"max_tokens": 30}, "--chat", "--template", FORM)["text"]
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": PROMPT}]
    streamed = model.chat(messages, template=FORM, variables={"mood": "happy"}, stream=True, max_tokens=30)
    named = model.chat(messages, template=FORM, chat_template_kwargs={"mood": "happy"}, max_tokens=30)
    text = f"system: Be brief.\nuser: {PROMPT}\nhappy"
    answer = model.generate(model.tokenize(text, special=False), max_tokens=30)
    assert "".join(token.text for token in streamed) == named == answer


# (call, class, what the message names)
WRONG = [
    (lambda m: m.generate(3.5), "InvalidArgument", ["[generate]", "3.5", "text", "tokens"]),
    (lambda m: m.generate(None), "InvalidArgument", ["[generate]", "null", "text"]),
    (lambda m: m.generate(b"a"), "InvalidArgument", ["[generate]", "b'a'", "bytes"]),
    (lambda m: m.generate([9999]), "InvalidArgument", ["[generate]", "9999", "0 to 3071"]),
    (lambda m: m.generate([-1]), "InvalidArgument", ["-1", "0 to 3071"]),
    (lambda m: m.generate([1.5]), "InvalidArgument", ["1.5", "0 to 3071"]),
    (lambda m: m.generate([10**30]), "InvalidArgument", ["0 to 3071"]),
    (lambda m: m.generate([[]]), "InvalidArgument", ["the prompt has no tokens"]),
    (lambda m: m.stream([]), "InvalidArgument", ["[stream]", "the prompt has no tokens"]),
    (lambda m: m.stream(["a", "b"]), "InvalidArgument", ["[stream]", "generate"]),
    (lambda m: m.generate("\ud800"), "InvalidArgument", ["surrogate"]),
    (lambda m: m.generate([5] * 768), "InvalidArgument", ["768 tokens", "max_context"]),
    (lambda m: m.generate("a", max_tokens=0), "InvalidArgument", ["max_tokens is 0", "positive"]),
    (lambda m: m.generate("a", max_tokens=True), "InvalidArgument", ["max_tokens is true"]),
    (lambda m: m.generate("a", temperature="hot"), "InvalidArgument", ['temperature is "hot"', "number"]),
    (lambda m: m.generate("a", temperature=-1), "InvalidArgument", ["temperature is -1", "0 to 100"]),
    (lambda m: m.generate("a", temperature=float("nan")), "InvalidArgument", ["temperature", "0 to 100"]),
    (lambda m: m.generate("a", top_p=object()), "InvalidArgument", ["[generate]", "object"]),
    (lambda m: m.generate("a", temprature=1), "InvalidArgument", ["no setting temprature", "temperature"]),
    (lambda m: m.generate("a", stop=[""]), "InvalidArgument", ["stop[0]", "empty"]),
    (lambda m: m.generate("a", stop=3), "InvalidArgument", ["stop is 3"]),
    (
        lambda m: m.generate("a", logit_bias={9999: 1}),
        "InvalidArgument",
        ["logit_bias has token 9999", "3071"],
    ),
    (lambda m: m.generate("a", logit_bias={"a": 1}), "InvalidArgument", ["logit_bias", "'a' is no token id"]),
    (
        lambda m: m.generate("a", logit_bias={5: -101}),
        "InvalidArgument",
        ["logit_bias is -101", "-100 to 100"],
    ),
    (lambda m: m.generate("a", presence_penalty=3), "InvalidArgument", ["presence_penalty is 3", "-2 to 2"]),
    (lambda m: m.generate("a", suppress_tokens=[9999]), "InvalidArgument", ["suppress_tokens", "9999"]),
    (lambda m: m.chat("a", template="/nowhere.jinja"), "FileError", ["/nowhere.jinja"]),
    (lambda m: m.chat("a", variables=3), "InvalidArgument", ["[chat]", "variables", "int", "dict"]),
    (
        lambda m: m.chat("a", variables={}, chat_template_kwargs={}),
        "InvalidArgument",
        ["[chat]", "one of them"],
    ),
    (lambda m: m.chat("a", template=FORM, max_tokens=0), "InvalidArgument", ["max_tokens is 0"]),
    (lambda m: m.chat(None, template=FORM), "InvalidArgument", ["form.jinja", "messages"]),
    (lambda m: m.chat([3], template=FORM), "InvalidArgument", ["form.jinja"]),
    (lambda m: m.chat([{"role": b"a"}], template=FORM), "InvalidArgument", ["[chat]", "b'a'", "bytes"]),
    (lambda m: m.chat([{b"a": "a"}], template=FORM), "InvalidArgument", ["[chat]", "key b'a'", "text"]),
    (lambda m: m.logits([]), "InvalidArgument", ["[logits]", "no tokens"]),
    (lambda m: m.logits("a"), "InvalidArgument", ["[logits]", "tokens"]),
    (lambda m: m.logits([5] * 769), "InvalidArgument", ["769 tokens", "768"]),
    (lambda m: m.tokenize(3), "InvalidArgument", ["[tokenize]", "3", "text"]),
    (lambda m: m.detokenize(["a"]), "InvalidArgument", ["[detokenize]", '"a"']),
    (lambda m: heddle.load("nowhere"), "FileError", ["[nowhere]", "no such folder"]),
    (lambda m: heddle.load(__file__), "FileError", ["not a folder"]),
    (lambda m: heddle.load(FOLDER, device="tpu"), "InvalidArgument", ["'tpu' is no device", "cuda:1"]),
    (lambda m: heddle.load(FOLDER, device="cuda:x"), "InvalidArgument", ["'cuda:x' is no device"]),
    (lambda m: heddle.load(FOLDER, max_context=10**6), "InvalidArgument", ["max_context", "1 to 768"]),
    (lambda m: heddle.load(FOLDER, max_context="x"), "InvalidArgument", ['max_context is "x"', "int"]),
    (lambda m: heddle.load(FOLDER, threads=-1), "InvalidArgument", ["threads = -1", "1024"]),
    (lambda m: heddle.load(FOLDER, context=5), "InvalidArgument", ["no option context", "max_context"]),
    (lambda m: heddle.load(FOLDER, executor="fast"), "InvalidArgument", ["fast"]),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_the_message_names_what_is_wrong(model, number):
    wrong, kind, names = WRONG[number]
    with pytest.raises(heddle.Error) as caught:
        wrong(model)
    assert type(caught.value).__name__ == kind, caught.value
    text = str(caught.value)
    assert "\n" not in text
    for name in names:
        assert name in text, text


def test_a_closed_model_says_so():
    made = heddle.load(FOLDER, device="cpu")
    stream = made.stream(PROMPT, max_tokens=700)
    next(stream)
    errors = []

    def answer():
        try:
            made.generate([PROMPT] * 16, max_tokens=700, temperature=1.0)
        except heddle.InvalidArgument as error:
            errors.append(str(error))

    thread = threading.Thread(target=answer)
    thread.start()
    wait_for_tokens(made, 20)
    made.close()
    made.close()
    thread.join(300)
    calls = [
        lambda: made.generate("a"),
        lambda: made.logits([1]),
        lambda: made.tokenize("a"),
        lambda: made.stats,
        lambda: next(stream),
    ]
    for call in calls:
        with pytest.raises(heddle.InvalidArgument, match=r"\[model\] it is closed; heddle.load"):
            call()
    assert len(errors) == 1
    assert "closed" in errors[0]


def run(code):
    made = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False
    )
    assert made.returncode == 0, made.stderr
    return made.stdout


def test_a_process_may_end_or_fork_while_an_answer_is_made():
    head = f"import heddle, os, sys\nmodel = heddle.load({str(FOLDER)!r}, device='cpu')\n"
    head += "stream = model.stream('Once', max_tokens=700, temperature=1.0)\nprint(next(stream).index)\n"
    assert run(head) == "0\n"
    fork = """
sys.stdout.flush()
child = os.fork()
try:
    model.generate("a", max_tokens=3)
    print("an answer")
except heddle.Unsupported as error:
    print("forked" in str(error))
if child:
    assert os.waitpid(child, 0)[1] == 0
"""
    assert run(head + fork) == "0\nTrue\nan answer\n"


def test_the_keywords_are_the_settings():
    for function in (heddle.model.Model.generate, heddle.model.Model.stream, heddle.model.Model.chat):
        assert {"max_tokens", "temperature", "top_k", "seed", "stop"} <= set(
            inspect.signature(function).parameters
        )
    assert {"device", "max_context", "max_sequences"} <= set(inspect.signature(heddle.load).parameters)
    assert "the same seed gives the same text" in heddle.model.Model.stream.__doc__
