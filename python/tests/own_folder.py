"""A folder with an op `thrice` that has a tile body and a whole kernel."""

import heddle

HEADER = """#pragma once
#include "heddle/ir/tensor.h"
namespace heddle {
struct Thrice {
  Tensor x, y;
  float factor = 3.0f;
  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, D", "f32");
    v.write("y", s.y, "M, D", "f32");
    v.attribute("factor", s.factor);
  }
};
}  // namespace heddle
"""
BODY = """namespace thrice {
struct Body {
  template <class Block>
  static void run(Block& block, const Thrice& a, const TileCoord& t) {
    block.inputs();
    for (i32 row = t[0]; row < t[1]; ++row) {
      const auto x = block.row(a.x, row), y = block.row(a.y, row);
      block.map(a.x.last(), [&](auto i) { y.store(i, a.factor * x.load(i)); });
    }
  }
};
}  // namespace thrice
"""
KERNEL = """namespace thrice {
struct KernelConfig {};
template <class Config>
struct Kernel {
  static constexpr u32 kThreads = 32;
  static void run(const Thrice& a, const TensorMap*, u8*) {
    const i32 row = i32(blockIdx.x), i = i32(threadIdx.x);
    if (i < a.x.size[1])
      store_element(DType::kF32, row_of(a.y, row), i, a.factor * load_element(DType::kF32, row_of(a.x, row),
      i));
  }
};
}  // namespace thrice
"""
PYTHON = """
import heddle


def plan(call, gpu):
    return heddle.Launch(grid=call.x.shape[0], threads=32)


def reference(x, factor):
    return factor * x
"""


def load_thrice(folder):
    """Writes the op's files to a folder and loads them; its class."""
    for suffix, text in ((".h", HEADER), (".cuh", BODY), ("_kernel.sm80.cuh", KERNEL), (".py", PYTHON)):
        (folder / f"thrice{suffix}").write_text(text)
    return heddle.load_ops(folder)["thrice"]
