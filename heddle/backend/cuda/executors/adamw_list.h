// A step of AdamW over many tensors of a GPU in one launch. It has the bits of the host's pass (backend/cpu/adamw.h).
#pragma once

#include "heddle/backend/cuda/device/adamw_list.h"

namespace heddle::cuda {

// The tensors of a launch, in memory of the device.
struct AdamwTensors {
  const AdamwRow* rows;
  i32 count;
  i64 chunks;          // all rows have
  const float* codes;  // as AdamwList has them
};

// Puts the step on `stream` of a device; null is the default stream. The first call with each kind of dtypes compiles. Throws
// Error(kDevice), Error(kUnsupported) where there is no compiler.
void adamw_step(const AdamwTensors& tensors, const AdamwStep& step, int device, void* stream);

}  // namespace heddle::cuda
