// A reduction over the middle dimension, in one launch, or in two where one CTA for each output would leave a GPU idle.
#pragma once

#include "heddle/kit/arch/cluster.cuh"
#include "heddle/kit/arch/memory.cuh"
#include "heddle/kit/arch/numbers.cuh"
#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/kernel.cuh"
#include "heddle/kit/rows/row_share.cuh"
#include "heddle/kit/rows/row_team.cuh"
#include "heddle/kit/rows/vec8.cuh"
#include "heddle/ops/reduce/reduce_dim.h"

namespace heddle::device::reduce_dim {

#include "heddle/ops/reduce/over_rows.cuh"

struct KernelConfig {
  static constexpr u32 kThreads = 256;
  static constexpr i32 kWords = 4, kVector = 8, kLines = 0, kSplit = 1, kShort = 0, kFew = 0, kCluster = 1,
                       kGaps = kNoGaps, kKind = kReduceSum;
};

inline Rows rows_of(const ReduceDim& a) {
  return {a.x.data, a.x.size[0], a.x.size[1], a.x.size[2], a.x.stride[0], a.x.stride[1]};
}

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  using Work = Reduction<Config, Config::kKind, Config::types().x.dtype>;
  using Out = Reduced<Config::types().y.dtype>;
  static constexpr u32 kCtas = Work::kCtas;

  static Out out(const ReduceDim& a) { return {a.y.data, a.y.stride[0]}; }
  static void run(const ReduceDim& a, const TensorMap*, u8* workspace) {
    Work::run(rows_of(a), out(a), reinterpret_cast<float*>(workspace));
  }
};

template <class Config>
struct Finish : Kernel<Config> {
  using First = Kernel<Config>;
  static constexpr u32 kCtas = 1;
  static void run(const ReduceDim& a, const TensorMap*, u8* workspace) {
    First::Work::finish(rows_of(a), First::out(a), reinterpret_cast<const float*>(workspace));
  }
};

}  // namespace heddle::device::reduce_dim
