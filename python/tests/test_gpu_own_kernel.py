"""Whole kernels of ops of one's own on a GPU, or on one that a build without a GPU emulates."""

import sys
from pathlib import Path

import numpy
import pytest

import heddle
import heddle.ops
from gpu_array import Driver, GpuArray
from own_folder import load_thrice

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

try:
    DRIVER = Driver()
except OSError as error:
    pytest.skip(f"no GPU can be used here: {error}", allow_module_level=True)

RANDOM = numpy.random.default_rng(1)


def on_gpu(values):
    return GpuArray(DRIVER, values)


def bf16(values):
    """Bits of bf16, of values that it has."""
    return (numpy.ascontiguousarray(values, "f").view(numpy.uint32) >> 16).astype(numpy.uint16)


@pytest.mark.parametrize(("m", "n"), [(130, 43), (1, 64), (64, 1)])
def test_the_kernel_of_the_tutorial(m, n):
    from sums_of_rows import SumsOfRows

    left, right = (RANDOM.integers(-4, 5, (rows, 64)) for rows in (m, n))
    y = on_gpu(numpy.full(m, -1, "f"))
    SumsOfRows(on_gpu(bf16(left)), on_gpu(bf16(right)), out=y)
    path = heddle.last_path()
    assert (path.body, path.device) == ("sums_of_rows_kernel.sm80", "cuda:0")
    numpy.testing.assert_array_equal(y.numpy(), (left @ right.T).sum(-1))


def test_a_call_that_the_plan_refuses_runs_the_tile_body():
    from sums_of_rows import SumsOfRows

    left, right = (RANDOM.integers(-4, 5, (rows, 32)) for rows in (5, 3))
    y = on_gpu(numpy.zeros(5, "f"))
    SumsOfRows(on_gpu(bf16(left)), on_gpu(bf16(right)), out=y)
    path = heddle.last_path()
    assert path.body == "sums_of_rows"
    assert path.why_no_kernel == "it multiplies rows of 64 elements with at most 64 rows, not of 32 with 3"
    numpy.testing.assert_array_equal(y.numpy(), (left @ right.T).sum(-1))


SCALED = """
#include "heddle/tile/layout.h"

struct KernelConfig {
  static constexpr i32 kRows = 1, kWay = 0;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = 64;

  static void run(const Args& a, const TensorMap*, u8*) {
    for (i32 r = 0; r < Config::kRows; ++r) {
      const i32 row = i32(blockIdx.x) * Config::kRows + r;
      if (row >= a.x.size[0]) return;
      for (i32 i = i32(threadIdx.x); i < a.x.size[1]; i += i32(kThreads)) {
        const float x = load_element(Config::types().x.dtype, row_of(a.x, row), i);
        const float sign = a.kind == kind_minus ? -1.0f : 1.0f;
        store_element(Config::types().y.dtype, row_of(a.y, row), i, sign * a.scale * x + Config::kWay);
      }
    }
  }
};

// Says what the first launch made: the sum of the first column.
template <class Config>
struct Count : Kernel<Config> {
  static void run(const Args& a, const TensorMap*, u8*) {
    if (threadIdx.x > 0) return; float sum = 0; for (i32 row = 0; row < a.y.size[0]; ++row) sum +=
    load_element(Config::types().y.dtype, row_of(a.y, row), 0); store_element(DType::kF32, a.sum.data, 0,
    sum);
  }
};
"""


def planned(call, gpu):
    rows = call.config.get("rows", 1)
    assert call.x.dtype in ("f32", "f16")
    assert call.x.strides[1] == 1
    assert gpu.arch >= 80
    grid = -(-call.x.shape[0] // rows)
    launches = [heddle.Launch(grid=grid, threads=64)]
    if call.sum is not None:
        launches.append(heddle.Launch(grid=1, threads=64, name="Count"))
    return heddle.KernelPlan(launches, constants={"rows": rows, "way": call.config.get("way", 0)})


def scaled(**changes):
    from typing import Literal

    parts = {
        "reads": {"x": (None, "M, D")},
        "writes": {"y": (None, "M, D"), "sum": (heddle.f32, "one", True)},
        "tile": ("M",),
        "__annotations__": {"one": int, "scale": float, "kind": Literal["plus", "minus"]},
        "one": 1,
        "scale": 2.0,
        "kind": "plus",
        "kernel": SCALED,
        "plan": staticmethod(planned),
        "name": "scaled_kernel",
    }
    return type("ScaledKernel", (heddle.Op,), {**parts, **changes})


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_several_launches_and_attributes(dtype):
    op = scaled()
    x = RANDOM.standard_normal((7, 24)).astype(dtype)
    y, total = on_gpu(numpy.zeros_like(x)), on_gpu(numpy.zeros(1, "f"))
    op(on_gpu(x), scale=3.0, kind="minus", out={"y": y, "sum": total})
    assert heddle.last_path().body == "scaled_kernel_kernel.sm80"
    numpy.testing.assert_allclose(y.numpy(), (-3.0 * x.astype("f")).astype(dtype), rtol=1e-3)
    numpy.testing.assert_allclose(total.numpy(), y.numpy()[:, 0].astype("f").sum(), rtol=1e-4)


def test_pick_best_chooses_among_its_configurations():
    op = scaled(
        name="scaled_configs",
        configs=[
            {"kernel": 1, "rows": 2},
            {"kernel": 1, "rows": 3, "reorders": True},
            {"kernel": 1, "rows": 4},
        ],
    )
    x = RANDOM.standard_normal((7, 24)).astype("f")
    y = on_gpu(numpy.zeros_like(x))
    with heddle.settings.set(heddle.PickBest):
        op(on_gpu(x), out={"y": y})
    assert heddle.last_path().tuned.startswith("tuned: config kernel=1,rows=")
    assert heddle.last_path().tuned.endswith(" of 2")
    numpy.testing.assert_allclose(y.numpy(), 2 * x, rtol=1e-6)


TILES = """
for (i32 row = t[0]; row < t[1]; ++row) {
  const auto x = block.row(a.x, row), y = block.row(a.y, row);
  block.map(a.x.last(), [&](auto i) { y.store(i, x.load(i) + float(kWay)); });
}
"""


def test_configurations_of_a_tile_body_are_its_constants():
    parts = {"reads": {"x": (None, "M, D")}, "writes": {"y": (None, "M, D")}, "body": TILES}
    configs = [{"rows": 4, "way": 1}, {"rows": 2, "way": 1}]
    op = type("Ways", (heddle.Op,), {**parts, "tile": {"M": "rows"}, "configs": configs})
    x, y = RANDOM.standard_normal((9, 8)).astype("f"), on_gpu(numpy.zeros((9, 8), "f"))
    op(on_gpu(x), out=y)
    numpy.testing.assert_allclose(y.numpy(), x + 1, rtol=1e-6)
    with heddle.settings.set(heddle.PickBest):
        op(on_gpu(x), out=y)
    assert "way=1" in heddle.last_path().tuned
    numpy.testing.assert_allclose(y.numpy(), x + 1, rtol=1e-6)


MAPPED = """
template <class Config>
struct Kernel {
  static constexpr u32 kThreads = 128;

  static void run(const Args& a, const TensorMap* maps, u8*) {
    u8* const chip = arch::dynamic_shared();
    const arch::OnChip full = arch::on_chip(chip + 2048);
    if (threadIdx.x == 0) arch::init_barrier(full, 1);
    arch::show_to_copies();
    __syncthreads();
    if (threadIdx.x == 0) {
      arch::expect_bytes(full, 2048);
      arch::load_box(arch::on_chip(chip), maps, full, arch::Corner2{0, i32(blockIdx.x) * 16});
    }
    arch::wait_barrier(full, 0);
    for (i32 at = i32(threadIdx.x); at < 16 * 32; at += 128) {
      const i32 row = i32(blockIdx.x) * 16 + at / 32; if (row < a.y.size[0]) store_element(DType::kF32,
      row_of(a.y, row), at % 32, reinterpret_cast<float*>(chip)[at]);
    }
  }
};
"""


def test_tensor_maps_are_data():
    """Rows of 32 floats in boxes of 16 rows, the last of which is cut."""

    def plan(call, gpu):
        if not gpu.tensor_maps:
            return "there are no tensor maps"
        box = heddle.TensorMap("x", box=(16, 32), swizzle=0)
        return heddle.Launch(grid=-(-call.x.shape[0] // 16), threads=128, shared_bytes=2048 + 16, maps=[box])

    parts = {"reads": {"x": (heddle.f32, "M, D")}, "writes": {"y": (heddle.f32, "M, D")}, "tile": ("M",)}
    op = type("Boxed", (heddle.Op,), {**parts, "kernel": {"sm90": MAPPED}, "plan": staticmethod(plan)})
    x = RANDOM.standard_normal((39, 32)).astype("f")
    y = on_gpu(numpy.zeros_like(x))
    try:
        op(on_gpu(x), out=y)
    except heddle.Unsupported as error:
        pytest.skip(str(error))
    assert heddle.last_path().body == "boxed_kernel.sm90"
    numpy.testing.assert_array_equal(y.numpy(), x)


COPIED = """
#include "heddle/kit/move/copy_lines.cuh"

struct KernelConfig {
  static constexpr i32 kBytes = 1;  // an element has
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = 64;

  static void run(const Args& a, const TensorMap*, u8*) {
    constexpr i32 kBytes = Config::kBytes;
    copy_lines<kBytes>(u32(a.y.size[0]), a.columns * kBytes, a.y.data, a.y.size[1] * 4,
                       [&](u32 line) { return a.x.data + (a.first + i64(line) * a.apart) * kBytes; });
  }
};
"""


@pytest.mark.parametrize("size", [1, 2, 4])
def test_lines_that_begin_anywhere_are_copied(size):
    """`size`: bytes of an element. Floats are what the op's tensors are made of, and nothing else."""
    parts = {
        "reads": {"x": (heddle.f32, "one, N")},
        "writes": {"y": (heddle.f32, "M, D")},
        "tile": ("M",),
        "__annotations__": {"first": int, "apart": int, "columns": int, "one": int},
        "kernel": COPIED,
        "plan": staticmethod(
            lambda call, gpu: heddle.KernelPlan(
                [heddle.Launch(grid=3, threads=64)], constants={"bytes": size}
            )
        ),
    }
    name = f"Copied{size}"
    op = type(name, (heddle.Op,), {**parts, "first": 0, "apart": 1, "columns": 1, "one": 1})
    lines, word = 5, 16 // size
    x = RANDOM.integers(1, 127, 80000).astype("u1")
    source = on_gpu(x.view("f")[None])
    for columns in (1, 3, 7, 8, 9, 15, 17, 33, 40, 513, 2056, 3001):
        for first in (0, 1, 3, 4, 7, 11):
            y = on_gpu(numpy.full((lines, 12288), 101, "u1").view("f"))
            apart = columns + first % 3
            op(source, first=first, apart=apart, columns=columns, out=y)
            made = y.numpy().view(f"u{size}")
            for line in range(lines):
                begin = first + line * apart
                wanted = x.view(f"u{size}")[begin : begin + columns]
                numpy.testing.assert_array_equal(made[line, :columns], wanted)
            after = made[:, -(-columns // word) * word :]
            assert (after.view("u1") == 101).all(), "words after the line are not stored"


STORED = """
#include "heddle/kit/move/store_tile.cuh"

struct KernelConfig {
  static constexpr i32 kColumns = 8;  // of the tile
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = 128;

  static void run(const Args& a, const TensorMap*, u8*) {
    constexpr DType kType = Config::types().y.dtype;
    Tensor y = a.y;
    y.data += a.first * size_of(kType);
    y.size[0] = a.rows, y.size[1] = a.columns, y.stride[0] = a.apart;
    float sums[Config::kColumns / 2];
    for (i32 i = 0; i < Config::kColumns / 2; ++i) {
      const i32 row = i32(threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4) + i / 2 % 2 * 8;
      const i32 column = i / 4 * 8 + i32(threadIdx.x % 4) * 2 + i % 2;
      sums[i] = float((row * 31 + column) % 1024);
    }
    store_sums_anywhere<kType>(sums, arch::on_chip(arch::dynamic_shared()), y, 2, 4);
  }
};
"""


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("columns", [64, 128, 24])
def test_sums_are_stored_to_rows_that_begin_anywhere(dtype, columns):
    """A tile of 64 rows, from row 2 and column 4 on, of matrices that end in it and of larger ones."""

    def plan(call, gpu):
        if gpu.arch < 90:
            return "there are no stores of matrices"
        launch = heddle.Launch(grid=1, threads=128, shared_bytes=64 * 512)
        return heddle.KernelPlan([launch], constants={"columns": columns})

    names = ("first", "apart", "rows", "columns", "one")
    parts = {
        "writes": {"y": (None, "one, N")},
        "tile": ("N",),
        "__annotations__": dict.fromkeys(names, int),
        "kernel": STORED,
        "plan": staticmethod(plan),
    }
    op = type(f"Stored{columns}", (heddle.Op,), {**parts, **dict.fromkeys(names, 1)})
    tile = (numpy.arange(64)[:, None] * 31 + numpy.arange(columns)) % 1024
    for rows, wide, first, gap in (
        (80, 160, 8, 0),
        (80, 161, 8, 0),
        (40, 67, 3, 0),
        (66, 23, 0, 2),
        (9, 5, 1, 0),
    ):
        apart = wide + gap
        y = on_gpu(numpy.full((1, first + rows * apart), -1, dtype))
        op(first=first, apart=apart, rows=rows, columns=wide, out=y)
        wanted = numpy.full((rows, apart), -1, dtype)
        inside = tile[: rows - 2, : wide - 4]
        wanted[2 : 2 + inside.shape[0], 4 : 4 + inside.shape[1]] = inside
        made = y.numpy()[0]
        numpy.testing.assert_array_equal(made[first:].reshape(rows, apart), wanted)
        assert (made[:first] == -1).all()


def refusing(call, gpu):
    return "it does not like it"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"plan": staticmethod(refusing)},
            r"its kernel does not take this call: it does not like it; it has no body",
        ),
        ({"plan": staticmethod(lambda call, gpu: 3)}, r"its plan returns 3; must be a heddle.Launch"),
        (
            {"plan": staticmethod(lambda call, gpu: heddle.Launch(grid=3, cluster=2))},
            r"its plan has 3 CTAs in clusters of 2; must be a multiple",
        ),
        (
            {"plan": staticmethod(lambda call, gpu: heddle.Launch(1, maps=[heddle.TensorMap("z", (4, 4))]))},
            r"a TensorMap names 'z'; must be a tensor of the call",
        ),
        (
            {"plan": staticmethod(lambda call, gpu: heddle.KernelPlan([heddle.Launch(1)], file="sm90"))},
            r"its plan has file='sm90'; the class has sm80",
        ),
    ],
)
def test_a_wrong_plan_is_refused_by_name(changes, message):
    op = scaled(name="scaled_refused", **changes)
    x = RANDOM.standard_normal((3, 8)).astype("f")
    with pytest.raises(heddle.Error, match=r"\[scaled_refused\w*\] " + message):
        op(on_gpu(x), out={"y": on_gpu(x)})


def test_an_error_of_a_plan_is_its_own():
    def broken(call, gpu):
        raise KeyError("mine")

    x = RANDOM.standard_normal((3, 8)).astype("f")
    with pytest.raises(KeyError, match="mine"):
        scaled(name="scaled_broken", plan=staticmethod(broken))(on_gpu(x), out={"y": on_gpu(x)})


def test_a_wrong_kernel_shows_its_own_line():
    op = scaled(name="scaled_wrong", kernel=SCALED.replace("a.scale", "a.size"))
    x = RANDOM.standard_normal((3, 8)).astype("f")
    with pytest.raises(heddle.CompileError, match=r"<kernel of ScaledKernel>:19: .*size") as caught:
        op(on_gpu(x), out={"y": on_gpu(x)})
    assert caught.value.line == 19


def test_an_op_of_a_folder_has_a_whole_kernel(tmp_path):
    load_thrice(tmp_path)
    x = RANDOM.standard_normal((5, 24)).astype("f")
    y = on_gpu(numpy.zeros_like(x))
    heddle.ops.thrice(on_gpu(x), out=y)
    assert heddle.last_path().body == "thrice_kernel.sm80"
    numpy.testing.assert_allclose(y.numpy(), 3 * x, rtol=1e-6)
