// state_values_backward as a whole kernel: a CTA has the positions of one head in a chunk, and a few neighbouring lanes have a row.
#pragma once

#include "heddle/kit/kernel.cuh"
#include "heddle/kit/rows/row_team.cuh"
#include "heddle/kit/rows/vec8.cuh"
#include "heddle/ops/sympow/row_lanes_kernel.sm80.cuh"
#include "heddle/ops/sympow/state_values_backward.h"

namespace heddle::device::state_values_backward {

using namespace row_lanes;

struct KernelConfig {
  static constexpr i32 kKernel = 1;
  static constexpr i32 kLanes = 8;
};

template <class Config>
struct Kernel {
  static constexpr DType kType = Config::types().v.dtype, kGiven = Config::types().ds.dtype;
  static constexpr u32 kThreads = 256;
  static constexpr i32 kRows = i32(kThreads) / Config::kLanes;
  using Row = RowLanes<Config::kLanes>;

  static void run(const StateValuesBackward& a, const TensorMap*, u8*) {
    const ChunkTiles tiles = a.tiles();
    const i32 heads = a.v.size[2], chunk = i32(blockIdx.x) / heads % tiles.chunks(), words = a.v.size[3] / 8;
    const i32 begin = tiles.chunk_begin(chunk), end = tiles.chunk_end(chunk),
              first = i32(threadIdx.x) / Config::kLanes;
    Row row{i32(blockIdx.x) / heads / tiles.chunks(), 0, i32(blockIdx.x) % heads};
    const float last = a.l.exists() ? row.at(a.l, end - 1) : 0.0f;
    float all = 0, own = 0;  // sums of the chunk's rows that the thread has, and of the chunk's last position
#pragma unroll 2
    for (i32 at = begin; at < end; at += kRows) {
      row.t = min(at + first, end - 1);
      const bool exists = at + first < end;
      const float decay = a.l.exists() ? exp(last - row.at(a.l)) : 1.0f;
      float sum = 0;
      if (Row::lane() < words) {
        Vec8<kType> v;
        Vec8<kGiven> ds;
        v.load(row.template row<kType>(a.v), Row::lane()),
            ds.load(row.template row<kGiven>(a.ds), Row::lane());
        sum = dot(v, ds);
        if (exists)
          Vec8<kType>::of([&](i32 i) {
            return ds.get(i) * decay;
          }).store(row.template row<kType>(a.dv), Row::lane());
      }
      if (a.normalise && Row::lane() == 0)
        sum += load_element(kGiven, row.template row<kGiven>(a.ds), a.v.size[3]);
      sum = Row::sum(sum) * decay;
      if (!exists || Row::lane() != 0) continue;
      row.at(a.dl) = -sum;
      all += sum;
      if (row.t == end - 1) own = sum;
    }
    __syncthreads();  // the last position's sum is there
    using Team = RowTeam<kThreads, kThreads>;
    const float whole = Team::reduce(Sum(), all);
    const float of_last = Team::reduce(Sum(), own, 1);
    if (threadIdx.x == 0) row.at(a.dl, end - 1) = whole - of_last;
  }
};

}  // namespace heddle::device::state_values_backward
