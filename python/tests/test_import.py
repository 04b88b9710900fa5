"""What importing heddle loads, and how long it takes."""

import json
import subprocess
import sys

import pytest

import heddle

MOST_MS = 30 * 5  # 30 ms on an idle core; a loaded one may take longer


def run(code):
    made = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert made.returncode == 0, made.stderr
    return json.loads(made.stdout)


def test_it_loads_no_other_library():
    loaded = run(
        "import sys, json; before = set(sys.modules); import heddle; heddle.ops.NAMES;"
        "print(json.dumps(sorted({name.split('.')[0] for name in set(sys.modules) - before})))"
    )
    standard = set(sys.stdlib_module_names)
    assert {name for name in loaded if name not in standard} == {"heddle", "nanobind_backend"}


def test_it_is_fast():
    times = [
        run(
            "import time; t = time.perf_counter(); import heddle; heddle.ops;"
            "print((time.perf_counter() - t) * 1000)"
        )
        for _ in range(3)
    ]
    assert min(times) < MOST_MS


def test_torch_may_come_later_or_earlier():
    for first, second in (("torch", "heddle.ops"), ("heddle.ops", "torch")):
        made = run(
            f"import {first}, {second}, json, torch;"
            "y = heddle.ops.softmax(torch.zeros(2, 4));"
            "print(json.dumps(y.tolist()))"
        )
        assert made == [[0.25] * 4] * 2


def test_an_unknown_name_says_what_there_is():
    with pytest.raises(AttributeError, match="set_backend"):
        heddle.no_such_name  # noqa: B018
