"""Ops of one's own on a GPU, or on one that a build without a GPU emulates."""

# ruff: noqa: RUF012 - a class declares an op by its attributes, which nobody changes

import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import heddle
import heddle.ops
from gpu_array import Driver, GpuArray
from test_own_op import Blend, Gate, Norm

try:
    DRIVER = Driver()
except OSError as error:
    pytest.skip(f"no GPU can be used here: {error}", allow_module_level=True)

RANDOM = numpy.random.default_rng(1)
X, W = RANDOM.standard_normal((33, 64), "f"), RANDOM.standard_normal(64, "f")


def on_gpu(values):
    return GpuArray(DRIVER, values)


@pytest.fixture(autouse=True)
def no_compiler_of_the_host(monkeypatch):
    monkeypatch.setenv("HEDDLE_CXX", "no-such-compiler")


def test_a_call_runs_the_body_on_the_gpu():
    outs = {"y": on_gpu(numpy.zeros_like(X)), "head": on_gpu(numpy.zeros((33, 3), "f"))}
    Blend(on_gpu(X), on_gpu(W), scale=2.0, count=3, out=outs)
    assert heddle.last_path().device == "cuda:0"
    y, head = Blend.reference(X, W, 2.0, 3)
    numpy.testing.assert_allclose(outs["y"].numpy(), y, atol=1e-5)
    numpy.testing.assert_allclose(outs["head"].numpy(), head, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_two_tiled_dimensions_and_other_floats(dtype):
    x, y = X.astype(dtype), on_gpu(numpy.zeros((33, 32), dtype))
    Gate(on_gpu(x), out=y)
    numpy.testing.assert_allclose(y.numpy(), Gate.reference(x.astype("d"))["y"], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("kind", ["largest", "softmax"])
def test_a_whole_struct_with_a_choice(kind):
    y = on_gpu(X)
    Norm(y, kind=kind, out=y)  # in place
    numpy.testing.assert_allclose(y.numpy(), Norm.reference(X.astype("d"), kind), atol=1e-5)


@pytest.mark.parametrize("executor", ["megakernel", "launches"])
def test_it_is_a_part_of_a_program(executor):
    x, weight, bias = on_gpu(X), on_gpu(W), on_gpu(W)
    h, y, head = on_gpu(X), on_gpu(numpy.zeros_like(X)), on_gpu(numpy.zeros((33, 1), "f"))
    kernel = heddle.Megakernel(
        [
            heddle.schedule("rms_norm", x=x, weight=weight, y=h),
            Blend.schedule(x=h, bias=bias, y=y, head=head, count=1),
            Norm.schedule(x=y, y=y, kind="softmax"),
            heddle.schedule("add", a=x, b=y, y=x),
        ],
        heddle.MegakernelConfig(executor=executor),
    )
    wanted = X
    for _ in range(2):
        kernel.run()
        normed = heddle.ops.rms_norm(wanted.astype("f"), W)
        wanted = wanted + Norm.reference(Blend.reference(normed, W, 1.5, 1)[0], "softmax")
        numpy.testing.assert_allclose(x.numpy(), wanted, atol=1e-5)


class Reversed(heddle.Op):
    """Each row backwards, by way of memory on chip."""

    reads = {"x": (heddle.f32, "M, D")}
    writes = {"y": (heddle.f32, "M, D")}
    tile = ("M",)
    scratch = ("D", "2D")
    body = """
    const auto kept = block.scratch(a.x.last()), twice = block.scratch(2 * a.x.last());
    const i32 last = a.x.last() - 1;
    for (i32 row = t[0]; row < t[1]; ++row) {
      const auto x = block.row(a.x, row), y = block.row(a.y, row);
      block.map(a.x.last(), [&](auto i) { kept.store(i, x.load(i)); });
      block.sync();
      block.map(a.x.last(), [&](auto i) { twice.store(i + last, kept.get(last - i32(block.index(i)))); });
      block.sync();
      block.map(a.x.last(), [&](auto i) { y.store(i, twice.load(i + last)); });
      block.sync();
    }
    """

    @staticmethod
    def reference(x):
        return x[:, ::-1]


def test_memory_on_chip(monkeypatch):
    y = on_gpu(numpy.zeros_like(X))
    Reversed(on_gpu(X), out=y)
    numpy.testing.assert_array_equal(y.numpy(), X[:, ::-1])
    monkeypatch.delenv("HEDDLE_CXX")
    Reversed.check()
    unknown = type("Unknown", (Reversed,), {"scratch": (), "writes": Reversed.writes})
    with pytest.raises(
        heddle.CompileError, match=r"takes block\.scratch; say how many floats, as in scratch"
    ):
        unknown(on_gpu(X), out=y)


class Scores(heddle.Op):
    """y = x w^T for tiles of rows, by a product on chip."""

    reads = {"x": (None, "M, K"), "w": (None, "N, K")}
    writes = {"y": (None, "M, N")}
    tile = {"M": 4}
    scratch = ("M, N", "M, K", "N, K")  # sums, and both matrices of the product
    body = """
    const i32 rows = block.rows(t), n = a.w.size[0], k = a.w.size[1];
    auto sums = block.fragment(t[0], rows, 0, n);
    auto product = block.product(rows, n, k, a.w.dtype);
    block.set_right_rows(product, 0, 0, Lines{block.row(a.w, 0), a.w.stride[0], n, k});
    block.map_rows(rows, k, [&](i32 m, auto i) {
      product.left_row(m).store(i, block.row(a.x, t[0] + m).load(i));
    });
    block.sync();
    block.mma(sums, product);
    block.sync();
    block.map_rows(rows, n, [&](i32 m, auto i) {
      block.row(a.y, sums.m0 + m).store(i, sums.row(m).load(i));
    });
    """
    cases = ({"M": 9, "N": 5, "K": 11}, {"M": 1, "N": 1, "K": 1})

    @staticmethod
    def reference(x, w):
        return x @ w.T


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_product_on_chip(dtype, monkeypatch):
    x, w = X.astype(dtype), RANDOM.standard_normal((21, 64)).astype(dtype)
    wanted = Scores.reference(x.astype("d"), w.astype("d"))
    bound = {"float32": 1e-5, "float16": 2e-3}[dtype]
    y = on_gpu(numpy.zeros((33, 21), dtype))
    Scores(on_gpu(x), on_gpu(w), out=y)
    assert heddle.last_path().device == "cuda:0"
    numpy.testing.assert_allclose(y.numpy(), wanted, rtol=bound, atol=10 * bound)
    for executor in ("launches", "megakernel"):
        y, z = (on_gpu(numpy.zeros((33, 21), dtype)) for _ in range(2))
        calls = [Scores.schedule(x=on_gpu(x), w=on_gpu(w), y=y), heddle.schedule("softmax", x=y, y=z)]
        heddle.Megakernel(calls, heddle.MegakernelConfig(executor=executor)).run()
        numpy.testing.assert_allclose(y.numpy(), wanted, rtol=bound, atol=10 * bound)
        numpy.testing.assert_allclose(z.numpy().astype("f").sum(1), 1, atol=1e-2)
    monkeypatch.delenv("HEDDLE_CXX")
    assert max(Scores.check().values()) < 5e-3
    unknown = type("Unknown", (Scores,), {"scratch": (), "writes": Scores.writes})
    with pytest.raises(heddle.CompileError, match=r"takes block\.fragment, block\.product; say how many"):
        unknown(on_gpu(x), on_gpu(w), out=y)


def test_operands_of_a_folders_op_may_be_matrices(tmp_path):
    from test_load_ops import floored_product

    op = floored_product(tmp_path)
    for dtype, bound in (("float32", 1e-4), ("float16", 1e-2)):
        x, w = X.astype(dtype), RANDOM.standard_normal((64, 21)).astype(dtype)
        wanted = numpy.maximum(x.astype("d") @ w.astype("d"), 0.5)
        y = on_gpu(numpy.zeros((33, 21), dtype))
        op(on_gpu(x), on_gpu(w), floor=0.5, out=y)
        assert heddle.last_path().device == "cuda:0"
        numpy.testing.assert_allclose(y.numpy(), wanted, rtol=bound, atol=bound)
        y = on_gpu(numpy.zeros((33, 21), dtype))
        heddle.Megakernel([op.schedule(x=on_gpu(x), w=on_gpu(w), floor=0.5, y=y)]).run()
        numpy.testing.assert_allclose(y.numpy(), wanted, rtol=bound, atol=bound)


def test_an_op_of_a_folder():
    op = heddle.load_ops(Path(__file__).parents[2] / "examples/cmake_op")["soft_clip"]
    x, shift, y = on_gpu(X), on_gpu(W), on_gpu(numpy.zeros_like(X))
    wanted = op.reference(X, W, 0.5, 0.1)
    heddle.ops.soft_clip(x, shift, limit=0.5, out=y)
    numpy.testing.assert_allclose(y.numpy(), wanted, atol=1e-6)
    z = on_gpu(numpy.zeros_like(X))
    heddle.Megakernel(
        [op.schedule(x=x, shift=shift, y=y, limit=0.5), heddle.schedule("softmax", x=y, y=z)]
    ).run()
    numpy.testing.assert_allclose(z.numpy(), heddle.ops.softmax(wanted.astype("f")), atol=1e-6)


class Wrong(heddle.Op):
    reads = {"x": (heddle.f32, "M, D")}
    writes = {"y": (heddle.f32, "M, D")}
    tile = ("M",)
    body = """
    const auto x = block.row(a.x, t[0]);
    const auto y = block.row(a.z, t[0]);
    """


@pytest.mark.parametrize("scheduled", [False, True])
def test_a_wrong_body_shows_its_own_line(scheduled):
    def run():
        if scheduled:
            heddle.Megakernel([Wrong.schedule(x=on_gpu(X), y=on_gpu(X))]).run()
        else:
            Wrong(on_gpu(X), out=on_gpu(X))

    with pytest.raises(heddle.CompileError, match=r"test_gpu_own_op.py:\d+: .*z") as caught:
        run()
    line = Path(__file__).read_text().splitlines()[caught.value.line - 1]
    assert line.strip() == "const auto y = block.row(a.z, t[0]);"
    assert "error" in caught.value.log


CODE = """
import sys
sys.path.insert(0, {tests!r})
import numpy, heddle
from gpu_array import Driver, GpuArray
class Twice(heddle.Op):
    reads = {{"x": (heddle.f32, "M, D")}}
    writes = {{"y": (heddle.f32, "M, D")}}
    tile = ("M",)
    body = '''for (i32 m = t[0]; m < t[1]; ++m)
      block.map(a.x.last(), [&](auto i) {{ block.row(a.y, m).store(i, 2 * block.row(a.x, m).load(i)); }});'''
driver = Driver()
x = GpuArray(driver, numpy.full((2, 3), 3, "f"))
y = GpuArray(driver, numpy.zeros((2, 3), "f"))
Twice(x, out=y)
assert (y.numpy() == 6).all()
"""


def test_another_process_takes_what_was_compiled(tmp_path):
    code = CODE.format(tests=str(Path(__file__).parent))
    kept = set()
    for at in range(2):  # the class stands elsewhere in the second
        made = subprocess.run(
            [sys.executable, "-c", "\n" * at + code],
            env={**os.environ, "HEDDLE_CACHE": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert made.returncode == 0, made.stderr
        kept.add(tuple(sorted(path.name for path in tmp_path.rglob("*") if path.is_file())))
    assert len(kept) == 1
