// Scores of attention before the softmax: `a.scale` multiplies them, and `a.softcap`, if not 0, caps them.
#pragma once

#include "heddle/kit/attention/running_softmax.cuh"
#include "heddle/kit/value/math.cuh"

namespace heddle::device {

// True if scores change before the softmax, which else scales them itself.
template <class Args>
inline bool modifies_scores(const Args& a) {
  return a.softcap > 0 || !(a.scale > 0);
}
// The factor that the softmax takes.
template <class Args>
inline float softmax_exponent(const Args& a) {
  constexpr float kLog2E = 1.4426950409f;
  return modifies_scores(a) ? kLog2E : a.scale * kLog2E;
}
template <class Args, i32 kCount>
inline void modify_scores(const Args& a, float (&scores)[kCount]) {
  const float scale = a.scale, cap = a.softcap;
#pragma unroll
  for (i32 i = 0; i < kCount; ++i) scores[i] *= scale;
  if (cap > 0) {
#pragma unroll
    for (i32 i = 0; i < kCount; ++i) scores[i] = tanh(scores[i] * (1 / cap)) * cap;
  }
}
// The best score of a row; a.kLowest where the row has seen none.
template <class Args>
inline float best_score(const Args& a, const RunningSoftmax& softmax, i32 row) {
  const float total = softmax.total[row];
  if (!(total > 0)) return total == 0 ? Args::kLowest : total;  // NaN is no best score: the total has it
  return softmax.best[row] * (modifies_scores(a) ? 1 : a.scale);
}

}  // namespace heddle::device
