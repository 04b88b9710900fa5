"""Configurations that calls choose: PickAny, PickBest, and the store of what was found."""

import json
import os
import subprocess
import sys
import threading

import numpy
import pytest

import heddle
import heddle.ops

RANDOM = numpy.random.default_rng(5)


def matrices(rows, columns=64, inner=32):
    return RANDOM.standard_normal((rows, inner), "f"), RANDOM.standard_normal((inner, columns), "f")


def in_child(code, folder):
    made = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "HEDDLE_TUNED": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    return made.stdout.splitlines()


BEST = """
import numpy, heddle, heddle.ops
a, b = numpy.ones((33, 32), "f"), numpy.ones((32, 64), "f")
def call(rows=33):
    y = heddle.ops.matmul(a[:rows], b)
    assert (y == 32).all()
    print(heddle.last_path().tuned or "none")
call()
"""


def test_pick_best_keeps_what_it_found(tmp_path):
    code = (
        BEST
        + """
with heddle.settings.set(heddle.PickBest, num_workers=2, max_configs=8, allow_failure=True):
    call()
call()
call(rows=20)  # another class of sizes
call(rows=34 - 1)
assert heddle.last_path().reason.startswith("tuned: config")
heddle.ops.rms_norm(a, numpy.ones(32, "f"))
print(heddle.last_path().reason)
"""
    )
    before, best, after, other, again, norm = in_child(code, tmp_path)
    assert before == "none"
    assert best.startswith("tuned: config columns=")
    assert best.endswith(" of 2")
    assert (after, other, again, norm) == (best, "none", best, "kernels are the default")
    (path,) = tmp_path.glob("*/*.json")
    (key,) = json.loads(path.read_text())["records"]
    assert "rows" not in key
    assert "M=33..64" in key
    # Another process finds it, and PickBest times nothing again.
    time = path.stat().st_mtime_ns
    lines = in_child(BEST + "with heddle.settings.set(heddle.PickBest): call()", tmp_path)
    assert lines == [best, best]
    assert path.stat().st_mtime_ns == time


def test_a_scope_ends_and_belongs_to_its_thread():
    a, b = matrices(5)
    seen = []

    def call():
        heddle.ops.matmul(a, b)
        seen.append(heddle.last_path().tuned)

    scope = heddle.settings.set(heddle.PickBest)
    with scope:
        other = threading.Thread(target=call)
        other.start()
        other.join()
        call()
        with heddle.settings.set(heddle.PickAny), scope:
            pass
        assert seen[0] == ""
        assert seen[1]
    with pytest.raises(KeyError), heddle.settings.set(heddle.PickBest):
        raise KeyError
    a, b = matrices(70)
    call()
    assert seen[2] == ""


@pytest.mark.parametrize("rows", [1, 65, 200])
def test_it_gives_the_same_bits(rows):
    a, b = matrices(rows, columns=190)
    plain = heddle.ops.matmul(a, b)
    with heddle.settings.set(heddle.PickBest):
        assert numpy.array_equal(heddle.ops.matmul(a, b), plain)
        assert heddle.last_path().tuned
        out = numpy.zeros((rows, 380), "f")[:, :190]
        assert heddle.ops.matmul(a.T.copy().T, b, out=out) is out
    assert numpy.array_equal(out, plain)


def test_calls_without_work():
    a, b = matrices(0)
    with heddle.settings.set(heddle.PickBest):
        assert heddle.ops.matmul(a, b).shape == (0, 64)
        assert heddle.last_path().tuned == ""


def test_one_configuration_is_no_choice():
    a, b = matrices(9, columns=66)
    with heddle.settings.set(heddle.PickBest, max_configs=1):
        heddle.ops.matmul(a, b)
    assert heddle.last_path().tuned == ""


def test_a_store_that_is_damaged_is_named(tmp_path):
    in_child(BEST + "with heddle.settings.set(heddle.PickBest): call()", tmp_path)
    (path,) = tmp_path.glob("*/*.json")
    path.write_text("{")
    code = BEST.replace("\ncall()\n", "\ntry: call()\nexcept heddle.Error as error: print(error)\n")
    (line,) = in_child(code, tmp_path)
    assert str(path) in line
    assert "remove it to tune again" in line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"policy": "best"}, r"policy is 'best'; must be heddle.PickAny or heddle.PickBest"),
        ({"num_workers": 0}, r"num_workers must be a whole number of 1 or more"),
        ({"max_configs": -1}, r"max_configs must be a whole number of 0 or more"),
        ({"max_configs": 1.5}, r"max_configs must be a whole number of 0 or more"),
    ],
)
def test_wrong_settings_are_refused(arguments, message):
    with pytest.raises(heddle.InvalidArgument, match=message):
        heddle.settings.set(**{"policy": heddle.PickBest, **arguments})
