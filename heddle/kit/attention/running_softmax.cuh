// The softmax of rows whose scores come step by step, with a running maximum (Milakov and Gimelshein, 2018: "Online normalizer
// calculation for softmax"). Weights are powers of two.
#pragma once

#include "heddle/kit/arch/numbers.cuh"
#include "heddle/kit/value/value.cuh"

namespace heddle::device {

// Two rows of a fragment of 16 x n scores, as products of matrices leave them in registers: four neighbouring threads have a row, and
// score i belongs to row i / 2 % 2.
struct RunningSoftmax {
  static constexpr float kMasked = -1e38f,
                         kLowest = -1e30f;  // a weight of kMasked is 0 even if all scores are masked

  float best[2] = {kLowest, kLowest}, total[2] = {0, 0}, factor[2];

  // Scores become weights 2^((score - best) scale). `factor`: what the sums so far are scaled by.
  template <i32 kCount>
  void take(float (&s)[kCount], float scale) {
#pragma unroll
    for (i32 r = 0; r < 2; ++r) {
      float most = s[2 * r];
#pragma unroll
      for (i32 i = 0; i < kCount / 4; ++i) most = fmaxf(most, fmaxf(s[4 * i + 2 * r], s[4 * i + 2 * r + 1]));
      most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
      most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
      const float now = fmaxf(best[r], most), bias = now * scale;
      factor[r] = arch::exp2((best[r] - now) * scale), best[r] = now;
      float sum = 0;
#pragma unroll
      for (i32 i = 0; i < kCount / 4; ++i) {
        float &a = s[4 * i + 2 * r], &b = s[4 * i + 2 * r + 1];
        a = arch::exp2(__fmaf_rn(a, scale, -bias)), b = arch::exp2(__fmaf_rn(b, scale, -bias));
        sum += a + b;
      }
      total[r] = __fmaf_rn(total[r], factor[r], sum);
    }
  }
  template <i32 kCount>
  void scale_sums(float (&sums)[kCount]) const {
#pragma unroll
    for (i32 i = 0; i < kCount; ++i) sums[i] *= factor[i / 2 % 2];
  }
  // A thread's total becomes that of its row.
  void join_lanes() {
#pragma unroll
    for (i32 r = 0; r < 2; ++r) {
      total[r] += __shfl_xor_sync(~0u, total[r], 1);
      total[r] += __shfl_xor_sync(~0u, total[r], 2);
    }
  }
};

}  // namespace heddle::device
