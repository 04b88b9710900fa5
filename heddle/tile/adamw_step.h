// A step of AdamW over many tensors in one pass, for the host's and the device's: runs of elements in memory, and the numbers that
// they share. What is stored in fewer bits than f32 is widened before the step and rounded after it.
#pragma once

#include "heddle/base/dtype.h"
#include "heddle/base/types.h"

namespace heddle {

enum class AdamwState : i32 {
  kF32,
  kBf16,     // rounded up or down at random, with the chances that keep the mean
  kDynamic,  // codes of the dynamic code (base/dynamic_code.h)
};

// A run of elements. With codes it begins at a block's first element.
struct AdamwTensor {
  u8* param;     // [count]
  u8* residual;  // [count] i16, for bf16: what the parameter's bits lack of those of an f32
  const u8* grad;
  u8 *m, *v;
  float *m_scale, *v_scale;  // where there are codes: one for each block
  i64 first;                 // the number of the first element in its tensor
  i64 count;
  u32 seed;  // makes the rounding at random
};

struct AdamwStep {
  DType param;  // kF32, or kBf16 with a residual
  DType grad;   // kF32 or kBf16
  AdamwState state;
  float lr, beta1, beta2, eps, weight_decay, grad_scale;
  i32 step;  // counted from 1
};

}  // namespace heddle
