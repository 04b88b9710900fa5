"""Many callers of one model: who goes first, who shares steps, and who holds up nobody."""

import threading
from pathlib import Path

import pytest

import heddle

FOLDER = Path(__file__).parents[2] / "models" / "storyteller"
PROMPT = "Once upon a time"
LONG = {"max_tokens": 700, "temperature": 1.0, "seed": 3, "eos_token_id": 3}


@pytest.fixture
def model():
    with heddle.load(FOLDER, device="cpu", max_sequences=4) as made:
        yield made


@pytest.fixture
def narrow():
    with heddle.load(FOLDER, device="cpu", max_sequences=1) as made:
        yield made


def in_threads(calls):
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)


def wait_until(is_true):
    for _ in range(300_000):
        if is_true():
            return
        threading.Event().wait(0.001)
    raise AssertionError("nothing happened for minutes")


def test_a_stream_begins_when_it_is_read(model):
    # Steps of few rows round alike.
    streams = [model.stream([300], max_tokens=30, reuse=True) for _ in range(9)]
    assert model.generate("27 + 45 =") == " 72."
    assert model.stats["waiting"] == 9
    assert model.stats["new_tokens"] == 5
    # They alternate, and keep their places, of which there are fewer.
    made = [[token.text for token in tokens] for tokens in zip(*streams, strict=True)]
    assert len(made) == 30
    assert all(len(set(texts)) == 1 for texts in made)


def test_calls_that_reuse_share_steps_and_others_do_not(model):
    for reuse, most in ((False, 1), (True, 4)):
        made = []
        stream = model.stream(PROMPT, reuse=reuse, **LONG)
        next(stream)
        in_threads(
            lambda i=i, made=made, reuse=reuse: made.append(model.generate(f"{i + 20} + 45 =", reuse=reuse))
            for i in range(4)
        )
        assert sorted(made) == [f" {i + 65}." for i in range(4)]
        assert model.stats["most_sequences"] == most
        stream.close()


def test_a_stream_that_nobody_reads_holds_up_nobody(narrow):
    text = narrow.generate(PROMPT, **LONG)
    before = narrow.stats["new_tokens"]
    stream = narrow.stream(PROMPT, **LONG)
    tokens = [next(stream)]
    wait_until(lambda: narrow.stats["new_tokens"] - before >= 16)
    assert narrow.generate("27 + 45 =") == " 72."
    assert narrow.stats["new_tokens"] - before < 30
    assert narrow.stats["put_off"] == 1
    assert narrow.stats["waiting"] == 1
    tokens += stream
    assert "".join(token.text for token in tokens) == text
    stats = narrow.stats
    assert (stats["waiting"], stats["running"]) == (0, 0)
    assert stats["free_pages"] == 768 // 64


def test_one_that_gives_way_goes_on_with_the_same_tokens(narrow):
    expected = narrow.generate(PROMPT, **LONG)
    stream = narrow.stream(PROMPT, reuse=True, priority=-1, **LONG)
    tokens = [next(stream)]
    assert narrow.generate("27 + 45 =", reuse=True, priority=7) == " 72."
    tokens += stream
    assert "".join(token.text for token in tokens) == expected


@pytest.mark.parametrize("kind", [heddle.DeadlineExceeded, heddle.Error, TimeoutError])
def test_a_deadline_ends_an_answer(narrow, kind):
    with pytest.raises(kind, match="the deadline has passed"):
        narrow.generate([PROMPT] * 200, deadline=0.05, **LONG)
    stream = narrow.stream(PROMPT, deadline=0.05, **LONG)
    with pytest.raises(kind):
        list(stream) * len(narrow.generate([PROMPT] * 4, **LONG))
    assert narrow.generate("27 + 45 =", deadline=300) == " 72."
    assert narrow.stats["free_pages"] == 768 // 64


def test_a_call_that_waits_expires_too(narrow):
    stream = narrow.stream(PROMPT, reuse=True, **LONG)
    next(stream)
    with pytest.raises(heddle.DeadlineExceeded):
        narrow.generate([PROMPT] * 40, deadline=0.02, reuse=False, **LONG)
    assert len(list(stream)) == 699


def test_few_pages_give_the_same_texts():
    prompts = [[1, 300 + i] for i in range(5)]
    settings = {"max_tokens": 500, "temperature": 1.0, "seed": 5, "eos_token_id": 3}
    made = []
    for pages in (None, 12):
        with heddle.load(FOLDER, device="cpu", max_sequences=3, kv_pages=pages) as model:
            made.append(model.generate(prompts, **settings))
            assert (model.stats["put_off"] > 0) == (pages is not None)
            assert model.stats["free_pages"] == (pages or 3 * 12)
    assert made[0] == made[1]
    with pytest.raises(heddle.InvalidArgument, match="kv_pages = 3; must be 12 or more"):
        heddle.load(FOLDER, device="cpu", kv_pages=3)


@pytest.mark.parametrize(
    "wrong",
    [{"priority": 0.5}, {"priority": True}, {"priority": 2**40}, {"deadline": 0}, {"deadline": "soon"}],
    ids=str,
)
def test_a_wrong_wish_is_named(model, wrong):
    for call in (model.generate, model.stream, model.chat):
        with pytest.raises(heddle.InvalidArgument, match=rf"\[{call.__name__}\] {next(iter(wrong))} is "):
            call(PROMPT, **wrong)
