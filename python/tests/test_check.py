"""heddle.check: what it finds wrong with an op, and that the ops hold."""

import json

import pytest
import torch

import heddle.ops
from heddle import check
from heddle.commands.cases import call, small_cases


def beside(tensor):
    """The bytes that a tensor's memory has, those before and after it too."""
    return torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage())


def unwritten(out, run, before):
    out.view(-1)[-1:] = before


def written_beside(out, run, before):
    beside(out)[check.GUARD - 1] = 0


def other_values(out, run, before):
    out.add_(1)


def other_bits(out, run, before):
    out.view(-1)[0] += run


FAULTS = [
    (unwritten, "differ from those of the first run"),
    (written_beside, "1 bytes before it were written"),
    (other_values, "above its bound"),
    (other_bits, "of run 2 differ"),
]


@pytest.mark.parametrize(("fault", "said"), FAULTS, ids=lambda each: getattr(each, "__name__", ""))
def test_a_fault_is_found(monkeypatch, capsys, fault, said):
    runs = []

    def broken(name, inputs, case, **more):
        before = more["out"][0].view(-1)[-1:].clone()
        made = call(name, inputs, case, **more)
        fault(more["out"][0], len(runs), before)
        runs.append(name)
        return made

    number, case = next(each for each in small_cases("softmax") if each[1]["tensors"]["x"][0] == "float32")
    check.check_case("softmax", number, case, "cpu", 2)
    monkeypatch.setattr(check, "call", broken)
    with pytest.raises(check.CaseError, match=said):
        check.check_case("softmax", number, case, "cpu", 2)
    assert check.main(["softmax", "--device", "cpu", "--runs", "2"]) == 1
    assert "FAIL softmax: result 0: " in capsys.readouterr().out
    assert check.main(["softmax", "--device", "cpu", "--runs", "2", "--json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["op"], found["holds"]) == ("softmax", False)
    assert found["faults"][0].startswith("softmax: result 0: ")


def test_ops_hold(capsys):
    assert check.main(["rms_norm", "add", "reduce", "--device", "cpu", "--runs", "5"]) == 0
    said = capsys.readouterr().out
    assert "3 of 3 ops hold on cpu" in said
    assert "18 in rms_norm" in said


def test_what_was_found_as_data(capsys):
    assert check.main(["add", "copy", "--device", "cpu", "--runs", "2", "--json"]) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert [each["op"] for each in found] == ["add", "copy"]
    assert all(each["holds"] and each["bodies"] and not each["faults"] for each in found)
    assert "2 of 2 ops hold on cpu" in said.err


def test_an_op_that_is_not_there_is_named():
    with pytest.raises(heddle.InvalidArgument, match="no op sofmax"):
        check.main(["sofmax"])
