"""heddle.load: what it says while it works, folders without a tokenizer, what a model prints as."""

import logging
import shutil
from pathlib import Path

import numpy
import pytest

import heddle
from heddle import progress

FOLDER = Path(__file__).parents[2] / "models" / "storyteller"
OPTIONS = {"device": "cpu", "threads": 1, "max_context": 64}


def test_a_function_hears_how_far_it_is():
    heard = []
    with heddle.load(FOLDER, progress=heard.append, **OPTIONS):
        pass
    assert [(each.doing, each.what) for each in heard] == [("loading", "bytes")] * len(heard)
    done = [each.done for each in heard]
    assert done == sorted(done)
    assert heard[-1].done == heard[-1].all > 0
    assert all("loading" in each.text for each in heard[:-1])


def test_what_the_function_raises_ends_loading():
    def refuse(_):
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        heddle.load(FOLDER, progress=refuse, **OPTIONS)


def test_a_log_and_lines(caplog, capsys, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    monkeypatch.setattr(progress, "PAUSE", 0.0)
    with caplog.at_level(logging.INFO, "heddle"):
        heddle.load(FOLDER, **OPTIONS).close()
    assert any("loaded in" in record.getMessage() for record in caplog.records)
    assert any(record.getMessage().startswith("loading") for record in caplog.records)
    caplog.clear()
    heddle.load(FOLDER, progress=True, **OPTIONS).close()
    assert "loading" in capsys.readouterr().err
    with caplog.at_level(logging.INFO, "heddle"):
        heddle.load(FOLDER, progress=False, **OPTIONS).close()
    assert not any(record.getMessage().startswith("loading") for record in caplog.records)
    with pytest.raises(heddle.InvalidArgument, match="progress is 3"):
        heddle.load(FOLDER, progress=3, **OPTIONS)


def test_a_line_of_a_terminal_is_taken_away(capsys):
    line = progress._Line(0.0)
    for done in (1, 2, 3):
        line(progress.Progress("loading", "bytes", done, 3, f"loading {done} of 3"))
    assert capsys.readouterr().err == "\rloading 1 of 3\rloading 2 of 3\r              \r"


def test_without_a_tokenizer_there_are_logits_and_tokens(tmp_path):
    for file in FOLDER.iterdir():
        if file.is_file() and not file.name.startswith("tokenizer"):
            shutil.copy(file, tmp_path / file.name)
    with heddle.load(FOLDER, **OPTIONS) as whole, heddle.load(tmp_path, **OPTIONS) as bare:
        assert numpy.array_equal(bare.logits([1, 2, 3]), whole.logits([1, 2, 3]))
        asked = {"max_tokens": 5, "temperature": 0.0}
        assert [token.id for token in bare.stream([1, 2], **asked)] == [
            token.id for token in whole.stream([1, 2], **asked)
        ]
        assert {token.text for token in bare.stream([1, 2], **asked)} == {""}
        for call in (
            lambda: bare.generate("a"),
            lambda: bare.generate([1, 2]),
            lambda: bare.tokenize("a"),
            lambda: list(bare.stream([1, 2], stop="a")),
        ):
            with pytest.raises(heddle.Error, match="without a tokenizer prompts and answers are tokens"):
                call()


def test_a_model_says_what_it_is():
    model = heddle.load(FOLDER, **OPTIONS)
    assert str(FOLDER) in repr(model)
    assert "64 tokens" in repr(model)
    assert model._repr_html_().startswith("<table")
    model.close()
    assert "closed" in repr(model)
