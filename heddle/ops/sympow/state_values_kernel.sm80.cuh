// state_values as a whole kernel: a few neighbouring lanes have a row.
#pragma once

#include "heddle/kit/kernel.cuh"
#include "heddle/kit/rows/vec8.cuh"
#include "heddle/ops/sympow/row_lanes_kernel.sm80.cuh"
#include "heddle/ops/sympow/state_values.h"

namespace heddle::device::state_values {

using namespace row_lanes;

struct KernelConfig {
  static constexpr i32 kKernel = 1;
  static constexpr i32 kLanes = 8;
};

template <class Config>
struct Kernel {
  static constexpr DType kType = Config::types().v.dtype;
  static constexpr u32 kThreads = 256;
  using Row = RowLanes<Config::kLanes>;

  static void run(const StateValues& a, const TensorMap*, u8*) {
    const i64 line = i64(blockIdx.x) * (kThreads / Config::kLanes) + threadIdx.x / Config::kLanes;
    if (line >= i64(a.v.size[0]) * a.v.size[1] * a.v.size[2]) return;
    const Row row = row_of_line<Config::kLanes>(a.v, line);
    const ChunkTiles tiles = a.tiles();
    const i32 last = tiles.chunk_end(row.t / tiles.chunk) - 1, words = a.v.size[3] / 8;
    const float decay = a.l.exists() ? exp(row.at(a.l, last) - row.at(a.l)) : 1.0f;
    if (Row::lane() < words) {
      Vec8<kType> v;
      v.load(row.template row<kType>(a.v), Row::lane());
      Vec8<kType>::of([&](i32 i) {
        return v.get(i) * decay;
      }).store(row.template row<kType>(a.s), Row::lane());
    }
    if (a.normalise && Row::lane() == 0) alone<kType>(decay).store(row.template row<kType>(a.s), words);
  }
};

}  // namespace heddle::device::state_values
