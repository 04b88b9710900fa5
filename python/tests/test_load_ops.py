"""Ops of a folder of headers."""

import shutil
from pathlib import Path

import numpy
import pytest
import torch

import heddle
import heddle.ops

FOLDER = Path(__file__).parents[2] / "examples/cmake_op"
OPS = heddle.load_ops(FOLDER)


def test_an_op_of_a_folder_is_one_of_heddles():
    x, shift = torch.randn(2, 9, 16), torch.randn(16)
    wanted = OPS["soft_clip"].reference(x, shift, 0.5, 0.1)
    torch.testing.assert_close(heddle.ops.soft_clip(x, shift, limit=0.5), wanted)
    torch.testing.assert_close(OPS["soft_clip"](x, shift, limit=0.5), wanted)
    assert len(OPS["soft_clip"].check()) == 4
    info = heddle.ops.info("soft_clip")
    assert info.signature == "(x, shift, *, limit=1, slope=0.1, out=None)"
    assert info.doc == "y = v as far as abs(v) <= limit, and grows by slope beyond, for v = x + shift."
    heddle.set_backend("soft_clip", "reference")
    heddle.ops.soft_clip(x, shift)
    assert heddle.last_path().backend == "reference"
    heddle.set_backend("soft_clip", "kernel")


def test_it_has_a_gradient_and_is_compiled():
    x, shift = torch.randn(9, 16, requires_grad=True), torch.randn(16, requires_grad=True)
    compiled = torch.compile(heddle.ops.soft_clip, fullgraph=True, dynamic=True, backend="aot_eager")
    for call in (compiled, heddle.ops.soft_clip, OPS["soft_clip"]):
        made = torch.autograd.grad(call(x, shift).sin().sum(), (x, shift))
        wanted = OPS["soft_clip"].reference(x, shift, 1.0, 0.1).sin().sum()
        for got, right in zip(made, torch.autograd.grad(wanted, (x, shift)), strict=True):
            torch.testing.assert_close(got, right)


def test_it_is_a_part_of_a_program():
    x, shift = numpy.random.default_rng(1).standard_normal((33, 16)).astype("f"), numpy.zeros(16, "f")
    y = numpy.empty_like(x)
    calls = [heddle.schedule("soft_clip", x=x, shift=shift, y=y), heddle.schedule("softmax", x=y, y=x)]
    wanted = heddle.ops.softmax(OPS["soft_clip"].reference(x, shift, 1.0, 0.1).astype("f"))
    heddle.Megakernel(calls, heddle.MegakernelConfig(workers=2)).run()
    numpy.testing.assert_allclose(x, wanted, atol=1e-6)


def copied(folder, changes, name="soft_clip"):
    for path in (FOLDER / "soft_clip").iterdir():
        text = path.read_text().replace("soft_clip", name)
        for old, new in changes.items():
            text = text.replace(old, new)
        (folder / path.name.replace("soft_clip", name)).write_text(text)
    return folder


def test_the_same_files_are_the_same_op(tmp_path, monkeypatch):
    shutil.copytree(FOLDER, tmp_path / "again")
    before = heddle.ops.soft_clip
    monkeypatch.setenv("HEDDLE_CXX", "no-such-compiler")
    again = heddle.load_ops(tmp_path / "again")
    assert heddle.ops.soft_clip is before
    again["soft_clip"](torch.ones(2, 4), torch.ones(4))  # nothing is compiled


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"v.read": "v.optional_read"}, "has v.optional_read; must be read, write, attribute or choice"),
        ({"v.write": "v.read"}, "has no v.write"),
        ({'"shift", s.shift': '"bias", s.shift'}, "calls shift 'bias'; must be the member's name"),
        ({"= 0.1f": "= 1 / 10.0f"}, "slope of .* begins as 1 / 10.0f; must be a number"),
        ({"float slope": "double slope"}, "slope of .* is no i32, float or bool"),
        ({"def backward(x": "def backward(z, x"}, "a parameter of backward is 'z'"),
    ],
)
def test_a_header_that_cannot_be_read_is_refused(tmp_path, changes, message):
    with pytest.raises(heddle.Error, match=message):
        heddle.load_ops(copied(tmp_path, changes))


def test_a_folder_without_ops_is_refused(tmp_path):
    with pytest.raises(heddle.InvalidArgument, match=r"has no x.cuh beside an x.h"):
        heddle.load_ops(tmp_path)
    (tmp_path / "lonely.cuh").write_text("")
    with pytest.raises(heddle.InvalidArgument, match=r"lonely.h is missing; must declare"):
        heddle.load_ops(tmp_path)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"Tensor y;            // [M, N]\n": "", "Tensor x;": "Tensor y, x;"}, "static_assert"),
        ({"a.slope * (v - inside)": "a.slop"}, "y.store(i, inside + a.slop);"),
    ],
)
def test_the_compiler_has_the_last_word(tmp_path, changes, line):
    changed = {**changes, "SoftClip": "Hard"}
    op = heddle.load_ops(copied(tmp_path, changed, "hard"))["hard"]
    with pytest.raises(heddle.CompileError) as caught:
        op(torch.ones(2, 4), torch.ones(4))
    if line != "static_assert":
        assert (tmp_path / "hard.cuh").read_text().splitlines()[caught.value.line - 1].strip() == line
    else:
        assert "static assertion" in caught.value.log
