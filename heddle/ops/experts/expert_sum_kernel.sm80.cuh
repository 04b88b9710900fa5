// The sums of tokens' experts, a warp for each token: all rows of a step are loaded before one is added.
#pragma once

#include "heddle/kit/kernel.cuh"
#include "heddle/kit/rows/vec8.cuh"
#include "heddle/ops/experts/expert_sum.h"

namespace heddle::device::expert_sum {

struct KernelConfig {
  static constexpr i32 kTaken = 8;   // experts of a token
  static constexpr i32 kPlaced = 0;  // 1: there are places
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = 256;
  static constexpr i32 kTaken = Config::kTaken;
  static constexpr i32 kEights = kTaken >= 8 ? 1 : 8 / kTaken;  // that a thread has at once
  static constexpr DType kType = Config::types().x.dtype;

  static void run(const ExpertSum& a, const TensorMap*, u8*) {
    const i32 row = i32(blockIdx.x * (kThreads / 32) + threadIdx.x / 32);
    if (row >= a.share.size[0]) return;
    i32 from[kTaken];
    float share[kTaken];
#pragma unroll
    for (i32 c = 0; c < kTaken; ++c) {
      share[c] = reinterpret_cast<const float*>(a.share.data)[i64(row) * a.share.stride[0] + c];
      from[c] = row * kTaken + c;
      if constexpr (Config::kPlaced != 0)
        from[c] = reinterpret_cast<const i32*>(a.place.data)[i64(row) * a.place.stride[0] + c];
    }
    const i32 eights = a.y.size[1] / 8;
#pragma unroll 1
    for (i32 begin = i32(lane()); begin < eights; begin += 32 * kEights)
      add(a, row, begin, eights, from, share);
  }

 private:
  static void add(const ExpertSum& a, i32 row, i32 begin, i32 eights, const i32 (&from)[kTaken],
                  const float (&share)[kTaken]) {
    Vec8<kType> values[kEights][kTaken];
#pragma unroll
    for (i32 e = 0; e < kEights; ++e)
#pragma unroll
      for (i32 c = 0; c < kTaken; ++c)
        if (from[c] >= 0 && begin + e * 32 < eights)
          values[e][c].load_kept(a.x.data + i64(from[c]) * a.x.stride[0] * size_of(kType), begin + e * 32);
#pragma unroll
    for (i32 e = 0; e < kEights; ++e) {
      if (begin + e * 32 >= eights) break;
      float sums[8];
      bool has_one = false;
#pragma unroll
      for (float& sum : sums) sum = 0;
#pragma unroll
      for (i32 c = 0; c < kTaken; ++c) {
        if (from[c] < 0) continue;
#pragma unroll
        for (i32 i = 0; i < 8; ++i) {
          const float value = values[e][c].get(i);
          sums[i] = has_one ? __fmaf_rn(value, share[c], sums[i]) : value * share[c];
        }
        has_one = true;
      }
      Vec8<kType>::of([&](i32 i) { return sums[i]; }).store(row_of(a.y, row), begin + e * 32);
    }
  }
};

}  // namespace heddle::device::expert_sum
