"""The commands of the package: their flags, devices and ends."""

import argparse
import json
import subprocess
import sys

import pytest

import heddle
from heddle import env
from heddle.commands import command_line
from heddle.commands.named import ops_named


def refused(capsys, words, parse):
    with pytest.raises(SystemExit) as ended:
        parse(words)
    assert ended.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--jsn"], "unknown flag --jsn; did you mean --json?"),
        (["--jsn=1"], "unknown flag --jsn; did you mean --json?"),
        (["--frob"], "unknown flag --frob\n"),
        (["x"], "'x' is not expected"),
    ],
)
def test_unknown_words_are_refused(capsys, words, said):
    assert said in refused(capsys, words, env.main)


def test_an_unknown_choice_names_the_nearest(capsys):
    parser = command_line.Parser("x", "")
    parser.add_argument("--suite", choices=("smoke", "rows", "training"))
    assert "'smok' (choose from" in refused(capsys, ["--suite", "smok"], parser.parse_args)
    assert refused(capsys, ["--suite", "smok"], parser.parse_args).endswith("; did you mean smoke?\n")


def test_a_device_has_one_form():
    assert [command_line.device(text) for text in ("cpu", "cuda", "cuda:1", "1")] == [
        "cpu",
        "cuda",
        "cuda:1",
        "cuda:1",
    ]
    for text, said in (
        ("gpu", "did you mean cuda"),
        ("cdua", "did you mean cuda"),
        ("h200", "a device is cpu"),
    ):
        with pytest.raises(argparse.ArgumentTypeError, match=said):
            command_line.device(text)


def test_an_unknown_op_names_the_nearest():
    with pytest.raises(heddle.InvalidArgument, match=r"no op sofmax; did you mean softmax\?"):
        ops_named("check", ["softmax", "sofmax"])
    with pytest.raises(heddle.InvalidArgument, match="no op nothing; heddle env lists them"):
        ops_named("check", ["nothing"])


def test_env_prints_json(capsys):
    env.main(["--json"])
    found = {each["name"]: each["text"] for each in json.loads(capsys.readouterr().out)}
    assert heddle.__version__ in found["heddle"]


def test_env_fits_the_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    env.main([])
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 or " " not in line[12:] for line in lines), lines


def test_a_closed_pipe_is_no_fault():
    command = [sys.executable, "-m", "heddle.env"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as ran:
        ran.stdout.close()
        assert ran.stderr.read() == b""
    assert ran.returncode == 141
