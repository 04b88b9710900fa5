"""Attention over processes of gloo, which are started once for each count (gloo_ranks.py)."""

import functools
import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("gloo_ranks.py")
FOUR = ("allgather", "allgather documents", "ring", "ulysses", "half precision", "mean loss", "nobody waits")


@functools.cache
def said(folder, count, *names):
    """{check: what each rank said}."""
    made = subprocess.run(
        [sys.executable, str(SCRIPT), str(count), str(folder / f"store{count}"), *names],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    found = {}
    for line in made.stdout.splitlines():
        if line.startswith("["):
            name, rank, text = json.loads(line)
            found.setdefault(name, {})[rank] = text
    assert all(len(each) == count for each in found.values()), made.stderr
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("gloo")


@pytest.mark.parametrize("name", FOUR)
def test_four_processes(folder, name):
    assert set(said(folder, 4)[name].values()) == {"ok"}


def test_four_processes_raise_one_error(folder):
    (error,) = set(said(folder, 4)["one error"].values())
    assert "q, k and v are [1, 2, 8, 12]" in error
    assert "(rank 1 of 4)" in error


def test_eight_processes_have_the_bits_of_one(folder):
    assert set(said(folder, 8, "allgather")["allgather"].values()) == {"ok"}
