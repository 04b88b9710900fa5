"""Ops that Python declares: a body in the tile language, a reference in NumPy."""

import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Literal

import numpy
import pytest
import torch

import heddle
import heddle.own.body

RANDOM = numpy.random.default_rng(5)


class Blend(heddle.Op):
    """y = scale x + bias, and the first columns of it."""

    reads = {"x": (None, "M, D"), "bias": (None, "D")}
    writes = [("y", None, "M, D"), ("head", heddle.f32, "M, count")]
    tile = {"M": 2}
    scale: float = 1.5
    count: int
    body = """
    const auto bias = block.row(a.bias);
    for (i32 row = t[0]; row < t[1]; ++row) {
      const auto x = block.row(a.x, row), y = block.row(a.y, row);
      const auto head = block.row(a.head, row);
      block.map(a.x.last(), [&](auto i) { y.store(i, a.scale * x.load(i) + bias.load(i)); });
      block.map(a.count, [&](auto i) { head.store(i, a.scale * x.load(i) + bias.load(i)); });
    }
    """
    cases = ({"M": 5, "D": 12, "count": 3}, {"M": 1, "D": 4, "count": 4, "scale": -2.0})

    @staticmethod
    def reference(x, bias, scale, count):
        y = scale * x + bias
        return y, y[:, :count]


class Norm(heddle.Op):
    """y = x / max |x| of a row, or over the sum of exponentials."""

    reads = {"x": (heddle.f32, "M, D")}
    writes = {"y": (heddle.f32, "M, D")}
    tile = ("M",)
    kind: Literal["largest", "softmax"] = "largest"
    in_place = True
    body = Path("own_norm.cuh")

    @staticmethod
    def reference(x, kind):
        if kind == "largest":
            return x / numpy.abs(x).max(-1, keepdims=True)
        e = numpy.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    cases = [{"M": 3, "D": 70, "kind": kind} for kind in ("largest", "softmax")]


class Gate(heddle.Op):
    """y = relu(gate) * up, of pairs, in tiles of both dimensions."""

    reads = [("x", None, "M, 2N")]
    writes = [("y", None, "M, N")]
    tile = {"M": 3, "N": 10}
    cases = [{"M": 7, "N": 33}]
    body = """
    for (i32 row = t[0]; row < t[1]; ++row) {
      const auto x = block.row(a.x, row).from(2 * t[2]), y = block.row(a.y, row).from(t[2]);
      block.map(t[3] - t[2], [&](auto i) {
        const auto pair = x.load_pair(i);
        y.store(i, max(pair.first, 0.0f) * pair.second);
      });
    }
    """

    @staticmethod
    def reference(x):
        return {"y": x[:, ::2].clip(0) * x[:, 1::2]}


def test_check_runs_the_cases():
    errors = Blend.check()
    assert len(errors) == 4  # two cases, in f32 and in f16
    assert max(errors.values()) < 2e-3
    assert len(Norm.check()) == 2
    assert len(Gate.check()) == 2


def test_check_finds_a_body_that_hides_nan():
    class HidesNan(heddle.Op):
        reads = [("x", None, "M, D")]
        writes = [("y", None, "M, D")]
        tile = {"M": 4}
        body = """
        for (i32 row = t[0]; row < t[1]; ++row) {
          const auto x = block.row(a.x, row), y = block.row(a.y, row);
          block.map(a.x.last(), [&](auto i) { y.store(i, where_less(0.0f, x.load(i), x.load(i), 0.0f)); });
        }
        """

        @staticmethod
        def reference(x):
            return {"y": x.clip(0)}

    with pytest.raises(heddle.InvalidArgument, match="is 0 where an input has NaN"):
        HidesNan.check()


def test_a_call():
    x, bias = torch.randn(2, 3, 8), torch.randn(8)
    y, head = Blend(x, bias, scale=2.0, count=3)
    torch.testing.assert_close(y, 2 * x + bias)
    assert torch.equal(head, y[..., :3])
    out = numpy.empty((4, 3), "f")
    array = RANDOM.standard_normal((4, 6)).astype("f")
    numpy.testing.assert_allclose(Norm(array, kind="softmax").sum(-1), 1, rtol=1e-5)
    y, made = Blend(array, bias[:6].numpy(), count=3, out={"head": out})
    assert made is out
    numpy.testing.assert_allclose(out, y[:, :3])


@pytest.mark.parametrize("executor", ["threads", "reference"])
def test_it_is_a_part_of_a_megakernel(executor):
    x, bias, weight = torch.randn(40, 8), torch.randn(8), torch.ones(8)
    y, head, z = torch.empty(40, 8), torch.empty(40, 1), torch.empty(40, 8)
    kernel = heddle.Megakernel(
        [
            Blend.schedule(x=x, bias=bias, y=y, head=head, count=1),
            heddle.schedule("rms_norm", x=y, weight=weight, y=z),
            Norm.schedule(x=z, y=z, kind="softmax"),
        ],
        heddle.MegakernelConfig(executor=executor, workers=3),
    )
    for _ in range(2):
        kernel.run()
    wanted = torch.softmax(heddle.ops.rms_norm(1.5 * x + bias, weight), -1)
    torch.testing.assert_close(z, wanted, atol=1e-5, rtol=1e-5)
    assert "0.blend" in kernel.program
    kernel.check()


def test_the_reference_runs_without_a_compiler(monkeypatch):
    class Doubled(heddle.Op):
        reads = {"x": (heddle.f32, "M, D")}
        writes = {"y": (heddle.f32, "M, D")}
        tile = ("M",)
        body = "for (i32 m = t[0]; m < t[1]; ++m) block.row(a.y, m).set(0, 1);"

        @staticmethod
        def reference(x):
            return 2 * x

    x = numpy.ones((2, 3), "f")
    monkeypatch.setenv("HEDDLE_CXX", "no-such-compiler")
    y = numpy.empty_like(x)
    for run in (
        lambda: Doubled(x),
        lambda: heddle.Megakernel([Doubled.schedule(x=x, y=y)]),
        Doubled.check,
    ):
        with pytest.raises(
            heddle.CompilerMissing, match=r"\[doubled\] .*HEDDLE_CXX=no-such-compiler.*install g\+\+"
        ):
            run()
    assert (Doubled(x, backend="reference") == 2).all()
    monkeypatch.delenv("HEDDLE_CXX")
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(heddle.CompilerMissing, match=r"none of c\+\+, g\+\+, clang\+\+ is here"):
        Doubled(x)


def test_the_backend_that_was_chosen():
    heddle.set_backend("blend", "reference")
    try:
        Blend(X, X[0], count=1)
        assert heddle.last_path().backend == "reference"
        Blend(X, X[0], count=1, backend="kernel")
        assert heddle.last_path().backend == "kernel"
        Blend(X, X[0], count=1)
        assert heddle.last_path().backend == "reference"
    finally:
        heddle.set_backend("blend", "kernel")


@pytest.mark.parametrize("types", [(torch.bfloat16, torch.bfloat16), (torch.bfloat16, torch.float32)])
def test_other_floats(types):
    x, bias = (torch.randn(size).to(dtype) for size, dtype in zip(((9, 37), (37,)), types, strict=True))
    y, _ = Blend(x, bias, count=1)
    assert y.dtype == torch.bfloat16
    torch.testing.assert_close(y, (1.5 * x.float() + bias.float()).bfloat16())


def test_a_wrong_body_shows_its_own_line():
    class Wrong(heddle.Op):
        reads = {"x": (heddle.f32, "M, D")}
        writes = {"y": (heddle.f32, "M, D")}
        tile = ("M",)
        body = """
        const auto x = block.row(a.x, t[0]);
        const auto y = block.row(a.z, t[0]);
        """

    with pytest.raises(heddle.CompileError, match=r"\[wrong\] .*test_own_op.py:\d+: .*z") as caught:
        Wrong(numpy.ones((2, 3), "f"))
    line = Path(__file__).read_text().splitlines()[caught.value.line - 1]
    assert line.strip() == "const auto y = block.row(a.z, t[0]);"
    assert "error" in caught.value.log


def declared(**changes):
    parts = {
        "reads": {"x": (heddle.f32, "M, D")},
        "writes": {"y": (heddle.f32, "M, D")},
        "tile": ("M",),
        "reference": staticmethod(lambda x: 2 * x),
    }
    return type("Tried", (heddle.Op,), {**parts, **changes})


BODY = "for (i32 m = t[0]; m < t[1]; ++m) block.map(a.x.last(), [&](auto i) { %s });"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("block.row(a.y, m).store(i, 3 * block.row(a.x, m).load(i));", r"y\[.*\] is .*; the reference has"),
        (
            "block.row(a.y, m).store(i, block.row(a.x, 0).load(i) * 2);",
            r"body reads x\[0, 0\]; of x this tile reads \[16, 32\) x \[0, 2\), in tile M \[16, 32\)",
        ),
        (
            "block.row(a.y, 0).store(i, block.row(a.x, m).load(i) * 2);",
            r"body writes y\[0, 0\]; of y this tile writes \[16, 32\) x \[0, 2\), in tile M \[16, 32\)",
        ),
        (
            "block.row(a.y, m).store(i, block.row(a.y, m).load(i));",
            r"body reads y\[0, 0\], which the class only writes, in tile M \[0, 16\)",
        ),
        (
            "block.row(a.y, m).store(i, block.row(a.x, m + 1).load(i) * 2);",
            r"body reads x\[16, 0\]; of x this tile reads \[0, 16\) x .*, in tile M \[0, 16\)",
        ),
        (
            "block.row(a.y, m).store(i, block.row(a.x, m + 33).load(i) * 2);",
            r"body reads memory .*; of x this tile reads \[0, 16\)|reads y\[",
        ),
    ],
)
def test_check_refuses(body, message):
    op = declared(body=BODY % body, cases=[{"M": 33, "D": 2}])
    with pytest.raises(heddle.InvalidArgument, match=message):
        op.check()


def test_check_cuts_smaller_tiles_too():
    op = declared(
        body=BODY % "block.row(a.y, m).store(i, 2 * block.row(a.x, t[0]).load(i));",
        tile={"M": 64},
        cases=[{"M": 3, "D": 2}],
    )
    with pytest.raises(heddle.InvalidArgument, match=r"y.* is .*; the reference has"):
        op.check()
    op = declared(
        body=BODY
        % "block.row(a.y, m).store(i, 2 * block.row(a.x, m).load(i) + 0 * block.row(a.x, 0).load(i));",
        tile={"M": 64},
        cases=[{"M": 3, "D": 2}],
    )
    with pytest.raises(
        heddle.InvalidArgument, match=r"reads x\[0, 0\]; of x .* \[1, 2\) .* in tile M \[1, 2\)"
    ):
        op.check()


def test_the_reference_executor_sees_what_a_body_touches():
    op = declared(body=BODY % "block.row(a.y, m).store(i, block.row(a.x, 0).load(i));")
    x = numpy.ones((33, 2), "f")
    calls = [op.schedule(x=x, y=numpy.empty_like(x))]
    heddle.Megakernel(calls, heddle.MegakernelConfig(executor="threads")).run()
    kernel = heddle.Megakernel(calls, heddle.MegakernelConfig(executor="reference"))
    with pytest.raises(
        heddle.InvalidArgument, match=r"\[tried\w*\] the body reads x\[0, 0\]; of x this tile"
    ):
        kernel.run()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reads": {"x": (None, 3)}}, r"\[Tried\] reads is \('x', None, 3\); must be like"),
        (
            {"reads": {"a": (None, "M")}},
            r"reads is 'a'; a name must be a name of C\+\+, and none of block, a",
        ),
        ({"reads": {"x": ("f8", "M, D")}}, r"the dtype of x is 'f8'; must be None"),
        ({"name": "my-op"}, r"name is 'my-op'; must be a name of C\+\+"),
        ({"scratch": (3,)}, r"scratch is \(3,\); must be the floats of each block.scratch"),
        ({"tile": None}, r"tile is None; must name one or two"),
        ({"body": 3}, r"body is 3; must be text"),
        ({"__annotations__": {"s": list}}, r"attribute s is .*list.*; must be an int"),
    ],
)
def test_a_wrong_class_is_refused_where_it_stands(changes, message):
    with pytest.raises(heddle.InvalidArgument, match=message):
        declared(**changes)


@pytest.mark.parametrize(
    ("changes", "call", "message"),
    [
        ({"tile": ("K",)}, lambda op: op(X), r"\[tried\w*\] tile has K; must be a dimension"),
        ({"scratch": "K"}, lambda op: op(X), r"\[tried\w*\] scratch has K; must be a dimension"),
        ({"name": "softmax"}, lambda op: op(X), r"\[softmax\] is an op of heddle already"),
        ({}, lambda op: op(X), r"has no body; give one"),
        ({"body": "", "reference": None}, lambda op: op(X, backend="reference"), "has no reference"),
        ({"body": BODY % ""}, lambda op: op(X, backend="fast"), "backend is 'fast'"),
        ({"body": BODY % ""}, lambda op: op(X.double()), r"x has dtype float64"),
        ({"body": BODY % ""}, lambda op: op(X, X), r"has 2 arguments by position"),
        (
            {"__annotations__": {"s": float}, "body": BODY % ""},
            lambda op: op(X),
            r"s is missing; must be given",
        ),
        (
            {"body": "", "reference": staticmethod(lambda x: x[0])},
            lambda op: op(X, backend="reference"),
            "returns sizes",
        ),
    ],
)
def test_wrong_calls_are_refused(changes, call, message):
    with pytest.raises(heddle.Error, match=message):
        call(declared(**changes))


X = torch.ones(3, 4)


def test_a_class_that_is_declared_again_is_the_same_op(monkeypatch):
    ops = [
        declared(name="again", body=BODY % "block.row(a.y, m).store(i, 2 * block.row(a.x, m).load(i));")
        for _ in "ab"
    ]
    assert torch.equal(ops[0](X), 2 * X)
    monkeypatch.setenv("HEDDLE_CXX", "no-such-compiler")
    assert torch.equal(ops[1](X), 2 * X)  # nothing is compiled
    other = declared(name="again", body=BODY % "block.row(a.y, m).store(i, 3 * block.row(a.x, m).load(i));")
    monkeypatch.delenv("HEDDLE_CXX")
    assert torch.equal(other(X), 3 * X)
    assert torch.equal(ops[0](X), 2 * X)


def test_another_process_takes_what_was_compiled(tmp_path):
    code = textwrap.dedent("""
        import numpy, heddle
        class Twice(heddle.Op):
            reads = {"x": (None, "M, D")}
            writes = {"y": (None, "M, D")}
            tile = ("M",)
            body = "for (i32 m = t[0]; m < t[1]; ++m) block.row(a.y, m).set(0, 2 * block.row(a.x, m).get(0));"
        print(Twice(numpy.full((2, 1), 3, "f")).tolist())
    """)
    libraries = set()
    for at in range(2):  # the class stands elsewhere in the second
        environment = {**os.environ, "HEDDLE_CACHE": str(tmp_path)}
        made = subprocess.run(
            [sys.executable, "-c", "\n" * at + code],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert made.stdout == "[[6.0], [6.0]]\n", made.stderr
        libraries.add(next((path, path.stat().st_mtime_ns) for path in tmp_path.glob("bodies/*")))
    assert len(libraries) == 1


def test_a_backend_of_one_call_is_seen_by_its_thread_alone():
    began, may_end = threading.Event(), threading.Event()

    class Waiting(heddle.Op):
        """y = x"""

        reads, writes, tile = {"x": (heddle.f32, "M, D")}, {"y": (heddle.f32, "M, D")}, ("M",)
        body = """
        for (i32 row = t[0]; row < t[1]; ++row) {
          const auto x = block.row(a.x, row), y = block.row(a.y, row);
          block.map(a.x.last(), [&](auto i) { y.store(i, x.load(i)); });
        }
        """

        @staticmethod
        def reference(x):
            began.set()
            assert may_end.wait(60)
            return x

    x = torch.ones(2, 3)
    thread = threading.Thread(target=lambda: Waiting(x, backend="reference"))
    thread.start()
    assert began.wait(60)
    Waiting(x)
    backend = heddle.last_path().backend
    may_end.set()
    thread.join()
    assert backend == "kernel"
    Waiting(x, backend="reference")
    assert heddle.last_path().backend == "reference"
    Waiting(x)
    assert heddle.last_path().backend == "kernel"
