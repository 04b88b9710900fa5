"""Ops of a folder of headers."""

import shutil
from pathlib import Path

import numpy
import pytest
import torch

import heddle
import heddle.ops
import own_folder

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
    for path in (FOLDER / "soft_clip").glob("soft_clip*"):
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


HEADER = """// y = x * scale + shift, and sign: where y is above 0.
#pragma once
#include "heddle/ir/tensor.h"
namespace heddle {
struct ScaleShift {
  Tensor x, scale, shift, y, sign;
  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, N");
    v.optional_read("scale", s.scale, "N");
    v.read("shift", s.shift, "N");
    v.write("y", s.y, "M, N");
    v.optional_write("sign", s.sign, "M, N", "f32");
  }
};
}  // namespace heddle
"""
BODY = """namespace scale_shift {
struct Body {
  template <class Block, class Args>
  static void run(Block& block, const Args& a, const TileCoord& t) {
    block.inputs();
    for (i32 m = t[0]; m < t[1]; ++m) {
      auto x = block.row(a.x, m), shift = block.row(a.shift), y = block.row(a.y, m);
      block.map(a.x.size[1], [&](auto i) {
        const float scaled = a.scale.exists() ? x.load(i) * block.row(a.scale).load(i) : x.load(i);
        const float value = scaled + shift.load(i);
        y.store(i, value);
        if (a.sign.exists()) block.row(a.sign, m).store(i, value > 0 ? 1.f : 0.f);
      });
    }
  }
};
}  // namespace scale_shift
"""
PYTHON = """
def reference(x, scale, shift):
    y = (x if scale is None else x * scale) + shift
    return y, (y > 0).astype("float64")

def backward(x, scale, dy):
    rows = dy.reshape(-1, dy.shape[-1])
    dscale = None if scale is None else (rows * x.reshape(rows.shape)).sum(0)
    return dy if scale is None else dy * scale, dscale, rows.sum(0)
"""


def test_tensors_may_be_optional(tmp_path):
    for ending, text in ((".h", HEADER), (".cuh", BODY), (".py", PYTHON)):
        (tmp_path / f"scale_shift{ending}").write_text(text)
    op = heddle.load_ops(tmp_path)["scale_shift"]
    assert heddle.ops.info("scale_shift").signature == "(x, shift, scale=None, *, out=None)"
    assert len(op.check()) == 12, "three sizes, two dtypes, with and without"
    x, shift, scale = torch.randn(5, 8), torch.randn(8), torch.randn(8)
    torch.testing.assert_close(op(x, shift), x + shift)
    torch.testing.assert_close(op(x, shift, scale=scale), x * scale + shift)
    torch.testing.assert_close(op(x, shift, scale=scale, backend="reference"), x * scale + shift)
    sign = torch.full_like(x, 7)
    y, made = op(x, shift, out={"sign": sign})
    assert made is sign
    torch.testing.assert_close(sign, (y > 0).float())
    y = torch.empty_like(x)
    heddle.Megakernel([op.schedule(x=x, shift=shift, y=y)]).run()
    torch.testing.assert_close(y, x + shift)
    leaves = [each.requires_grad_() for each in (x, shift, scale)]
    compiled = torch.compile(heddle.ops.scale_shift, fullgraph=True, backend="aot_eager")
    for call in (op, compiled):
        for given in (leaves[:2], leaves):
            made = torch.autograd.grad(call(*given).sin().sum(), given)
            plain = x * (scale if len(given) == 3 else 1) + shift
            for got, right in zip(made, torch.autograd.grad(plain.sin().sum(), given), strict=True):
                torch.testing.assert_close(got, right)


def test_members_are_in_the_order_of_visit(tmp_path):
    """Two structs that are as large as visit says, with members that have changed places."""
    for name, order in (("first_swapped", "scale, x, shift"), ("last_swapped", "x, shift, scale")):
        struct = "".join(part.capitalize() for part in name.split("_"))
        header = HEADER.replace("x, scale, shift", order)
        for ending, text in ((".h", header), (".cuh", BODY), (".py", PYTHON)):
            text = text.replace("ScaleShift", struct).replace("scale_shift", name)
            (tmp_path / f"{name}{ending}").write_text(text)
    ops = heddle.load_ops(tmp_path)
    for name in ("first_swapped", "last_swapped"):
        with pytest.raises(heddle.CompileError, match="must be in the order of visit"):
            ops[name](torch.ones(2, 4), torch.ones(4))


MATRIX_HEADER = """// y = x w, at least the floor.
#pragma once
#include "heddle/ir/tensor.h"
namespace heddle {
struct FlooredProduct {
  Tensor y;
  Matrix x, w;
  i32 times = 1;
  float floor = 0;
  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.write("y", s.y, "M, N");
    v.matrix("x", s.x, "M, K");
    v.matrix("w", s.w, "K, N");
    v.attribute("times", s.times);
    v.attribute("floor", s.floor);
  }
};
}  // namespace heddle
"""
MATRIX_BODY = """namespace floored_product {
struct Body {
  template <class Block, class Args>
  static void run(Block& block, const Args& a, const TileCoord& t) {
    block.inputs();
    auto sums = block.fragment(t[0], block.rows(t), 0, a.y.size[1]);
    block.mma(sums, a.x, a.w);
    block.sync();
    block.map_rows(sums.rows, sums.cols, [&](i32 m, auto i) {
      block.row(a.y, sums.m0 + m).store(i, max(float(a.times) * sums.row(m).load(i), a.floor));
    });
  }
};
}  // namespace floored_product
"""
MATRIX_PYTHON = """
import numpy

scratch = ("M, N", "M, K", "N, K")

def reference(x, w, times, floor):
    return numpy.maximum(times * (x @ w), floor)
"""


def floored_product(folder):
    for ending, text in ((".h", MATRIX_HEADER), (".cuh", MATRIX_BODY), (".py", MATRIX_PYTHON)):
        (folder / f"floored_product{ending}").write_text(text)
    return heddle.load_ops(folder)["floored_product"]


def test_operands_may_be_matrices_of_codes(tmp_path):
    op = floored_product(tmp_path)
    signature = (
        "(x, w, x_scales=None, x_zeros=None, w_scales=None, w_zeros=None, *, times=1, floor=0, out=None)"
    )
    assert heddle.ops.info("floored_product").signature == signature
    assert len(op.check()) == 6, "three sizes, in f32 and in f16 with matrices that lie in columns"
    x, w = torch.randn(5, 24), torch.randn(24, 7)
    torch.testing.assert_close(op(x, w, times=2, floor=-1.0), (2 * x @ w).clamp(min=-1))
    columns = w.T.contiguous().T  # read as it lies
    torch.testing.assert_close(op(x, columns), (x @ w).clamp(min=0))
    assert heddle.last_path().copies == 0
    codes = torch.randint(-127, 128, (24, 7), dtype=torch.int8)
    scales, zeros = torch.rand(24, 1), torch.randint(-3, 4, (24, 1)).float()
    values = scales * (codes.float() - zeros)
    made = op(x, codes, w_scales=scales, w_zeros=zeros)
    torch.testing.assert_close(made, (x @ values).clamp(min=0), atol=1e-3, rtol=1e-4)
    same = op(x, codes, w_scales=scales, w_zeros=zeros, backend="reference")
    torch.testing.assert_close(made, same, atol=1e-3, rtol=1e-4)
    packed = torch.randint(-127, 128, (7, 24), dtype=torch.int8)  # columns, in groups of eight with a scale
    groups = torch.rand(7, 3)
    values = (packed * groups.repeat_interleave(8, 1)).T
    made = op(x, packed.T, w_scales=groups)
    torch.testing.assert_close(made, (x @ values).clamp(min=0), atol=1e-3, rtol=1e-4)
    small = torch.randn(24, 7).to(torch.float8_e4m3fn)
    torch.testing.assert_close(op(x, small), (x @ small.float()).clamp(min=0), atol=1e-4, rtol=1e-4)
    y, z = torch.empty(5, 7), torch.empty(5, 7)
    calls = [op.schedule(x=x, w=codes, w_scales=scales, y=y), heddle.schedule("softmax", x=y, y=z)]
    heddle.Megakernel(calls).run()
    torch.testing.assert_close(y, (x @ (codes * scales)).clamp(min=0), atol=1e-3, rtol=1e-4)
    torch.testing.assert_close(z, y.softmax(1))
    for wrong, message in (
        ({"w_scales": scales[:5]}, r"w.scales is f32 \[5, 1\]"),
        ({"w_zeros": zeros}, "w has zeros and no scales"),
    ):
        with pytest.raises(heddle.InvalidArgument, match=message):
            op(x, codes, **wrong)
    with pytest.raises(heddle.InvalidArgument, match=r"w is f32 \[23, 7\]; must be \[K, N\] with K = 24"):
        op(x, w[:23])


def test_a_struct_in_another_order_is_refused_by_the_compiler(tmp_path):
    header = MATRIX_HEADER.replace("  Tensor y;\n", "").replace(
        "i32 times = 1;", "i32 times = 1;\n  Tensor y;"
    )
    for ending, text in ((".h", header), (".cuh", MATRIX_BODY), (".py", MATRIX_PYTHON)):
        changed = text.replace("floored_product", "other_order").replace("FlooredProduct", "OtherOrder")
        (tmp_path / f"other_order{ending}").write_text(changed)
    with pytest.raises(heddle.CompileError) as caught:
        heddle.load_ops(tmp_path)["other_order"](torch.ones(2, 2), torch.ones(2, 2))
    assert "static assertion" in caught.value.log


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"v.read": "v.weight"}, "has v.weight; must be read, write, optional_read, .* or choice"),
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
    with pytest.raises(heddle.InvalidArgument, match=r"has no x.cuh next to an x.h"):
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


HELPER = """#pragma once
#include "factors.cuh"
inline float twice(float x) { return kFactor * x; }
"""


def helped(folder, factor="2"):
    folder.mkdir(exist_ok=True)
    (folder / "thrice.h").write_text("// y = 2 factor x\n" + own_folder.HEADER)
    (folder / "factors.cuh").write_text(f"#pragma once\nconstexpr float kFactor = {factor};\n")
    (folder / "my_helper.cuh").write_text(HELPER)
    body = own_folder.BODY.replace("a.factor * x.load(i)", "a.factor * twice(x.load(i))")
    (folder / "thrice.cuh").write_text('#include "my_helper.cuh"\n#include "factors.cuh"\n' + body)
    (folder / "thrice.py").write_text("def reference(x, factor):\n    return 2 * factor * x\n")
    return heddle.load_ops(folder)["thrice"]


def test_a_body_may_include_files_next_to_it(tmp_path):
    x = torch.ones(2, 40)
    first = helped(tmp_path / "a")
    torch.testing.assert_close(first(x), torch.full((2, 40), 6.0))
    first.check()
    second = helped(tmp_path / "b")
    assert second.schedule(x=x, y=x).op == first.schedule(x=x, y=x).op
    assert second.compile() == first.compile()
    torch.testing.assert_close(
        helped(tmp_path / "a", "4")(x), torch.full((2, 40), 12.0)
    )  # it is compiled again
    (tmp_path / "a" / "my_helper.cuh").write_text(HELPER.replace("kFactor *", "kFaktor *"))
    with pytest.raises(heddle.CompileError, match=r"my_helper.cuh:3: .*kFaktor") as e:
        heddle.load_ops(tmp_path / "a")["thrice"](x)
    assert e.value.line == 3
    (tmp_path / "a" / "my_helper.cuh").write_text(HELPER + "\ninline void open() {\n")
    with pytest.raises(heddle.CompileError, match=r"my_helper.cuh:5: "):
        heddle.load_ops(tmp_path / "a")["thrice"](x)
