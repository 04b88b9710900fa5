"""The command `heddle` of the package, and the commands that its texts name."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import heddle
from heddle.__main__ import program

ROOT = Path(__file__).parents[2]
NAME = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["name"]
TEXTS = [
    *ROOT.glob("*.md"),
    *(path for folder in ("docs", "examples") for path in (ROOT / folder).rglob("*.*")),
    *(path for folder in ("python/heddle", "heddle", "apps") for path in (ROOT / folder).rglob("*.*")),
]


def texts():
    for path in TEXTS:
        if path.suffix in (".md", ".py", ".cpp", ".h", ".cuh", ".cmake") and "tests" not in path.parts:
            yield path, path.read_text()


def run(*words):
    return subprocess.run(
        [sys.executable, "-m", "heddle", *words], capture_output=True, text=True, check=False
    )


def test_the_module_is_the_program():
    story = run(
        "generate", str(ROOT / "models/storyteller"), "--prompt", "17 + 25 =", "--executor", "threads"
    )
    assert (story.returncode, story.stdout.rstrip("\n")) == (0, " 42."), story.stderr


def test_the_program_finds_the_interpreter_that_started_it(monkeypatch):
    monkeypatch.delenv("HEDDLE_PYTHON", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")  # no other Python is to be had
    checked = run("check", "rms_norm", "--help")
    assert (checked.returncode, "usage" in checked.stdout) == (0, True), checked.stderr


def test_a_package_without_the_program_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr("heddle.__main__.PLACES", (tmp_path / "heddle",))
    with pytest.raises(FileNotFoundError, match="this package has no program; looked for"):
        program()


def requirements(text):
    """Returns what `pip install` is told to install in a text, options left out."""
    for line in re.findall(r"pip install ([^`'\n#;]*)", text):
        words = line.replace('"', " ").replace("\\", " ").split()
        yield from (word for word in words if not word.startswith("-"))


def test_no_text_takes_another_package_for_this_one():
    # The name `heddle` on the index belongs to others.
    assert heddle.__name__ != NAME
    for path, text in texts():
        for wanted in requirements(text):
            name = re.split(r"[\[<>=!~]", wanted)[0].strip(",.):").lower()
            assert name != "heddle", f"{path}: pip install {wanted}"
        for extra in re.findall(r"(?<![\w./-])heddle\[([a-z0-9,]+)\]", text):
            raise AssertionError(
                f"{path}: heddle[{extra}] reads as a package that is not ours: {NAME}[{extra}]"
            )


def test_every_extra_that_a_text_names_exists():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = {extra for _, text in texts() for extra in re.findall(rf"(?:{NAME}|\.)\[([a-z0-9]+)\]", text)}
    assert named
    assert named <= set(extras)


def test_every_target_and_module_that_a_page_names_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        text = path.read_text()
        for target in re.findall(r"^make ([a-z-]+)|`make ([a-z-]+)`", text, re.MULTILINE):
            assert set(target) - {""} <= targets, f"{path}: make {target}"
        for module in re.findall(r"python3? -m (heddle[.\w]*)", text):
            assert (ROOT / "python" / module.replace(".", "/")).with_suffix(".py").exists() or (
                ROOT / "python" / module.replace(".", "/") / "__main__.py"
            ).exists(), f"{path}: python -m {module}"
