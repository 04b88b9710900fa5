// The list of tensors of a step of AdamW in one launch, for the host and adamw_list.cuh.
#pragma once

#include "heddle/tile/adamw_step.h"

namespace heddle {

inline constexpr i32 kAdamwBlock = 256;  // elements that a warp takes at once, and that share a scale
inline constexpr i32 kAdamwChunk = 32;   // blocks of a CTA
inline constexpr u32 kAdamwThreads = 256;

struct AdamwRow {
  AdamwTensor tensor;
  i64 chunk;  // the number of its first one in the launch
};

struct AdamwList {
  const AdamwRow* rows;  // ascending chunks
  i32 count;
  const float*
      codes;  // where means are codes: [4, 256], values and middles of those with a sign, and of those without
  float lr, beta1, beta2, eps, weight_decay, grad_scale;
  i32 step;
};

}  // namespace heddle
