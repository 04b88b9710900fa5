"""heddle.distributed: two processes that exchange compressed gradients."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import heddle
from heddle.distributed import METHODS, CompressState

SCRIPT = Path(__file__).with_name("compressed_training.py")


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    ranks = [subprocess.Popen([sys.executable, SCRIPT, str(rank), folder]) for rank in range(2)]
    assert [rank.wait(timeout=300) for rank in ranks] == [0, 0]
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)]


@pytest.mark.parametrize("method", METHODS)
def test_training_ends_where_it_does_without(seen, method):
    for each in seen:
        assert each[method]["same"]
        assert each["plain"] < 0.1  # it begins at 0.6
        assert each[method]["loss"] < each["plain"] * 1.1 + 0.002


def test_fewer_bytes(seen):
    for method, times in (("int8", 3.3), ("e4m3", 3.3), ("topk", 2.3)):
        assert seen[0][method]["times fewer bytes"] > times


@pytest.mark.parametrize("method", METHODS)
def test_no_error_adds_up(seen, method):
    """60 steps have lost as much as a few, though DDP makes other buckets after the first one."""
    for each in seen:
        few, many = each[method]["with"]
        assert many < 2 * few
        assert each[method]["without"] > 10 * many


def test_errors_are_saved_by_name(seen):
    for each in seen:
        assert {"first", "second"} <= set(each["saved"])
        assert each["kept"]


def test_infinities_reach_all_ranks_and_leave_no_error(seen):
    for each in seen:
        assert each["finite"] == [True, False, True]
        assert each["nonfinite"] >= 1


def test_what_is_refused():
    model = torch.nn.Linear(3, 3)
    with pytest.raises(heddle.InvalidArgument, match="method = 'int4'; must be one of int8, e4m3, topk"):
        CompressState(model, "int4")
    with pytest.raises(heddle.InvalidArgument, match="ratio = 0"):
        CompressState(model, "topk", ratio=0)
    for error in ({"weight": torch.zeros(4)}, {"other": torch.zeros(9)}):
        with pytest.raises(heddle.InvalidArgument, match="the saved error of"):
            CompressState(model).load_state_dict({"step": 1, "errors": error})
