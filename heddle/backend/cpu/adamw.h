// A step of AdamW over many tensors of the host in one pass, each element read once and written once. It has the bits of the op adamw
// on parameters and states in f32.
#pragma once

#include <span>

#include "heddle/backend/cpu/simd.h"
#include "heddle/tile/adamw_step.h"

namespace heddle {

// Steps all of them, with the calling thread and up to `threads` - 1 others. All levels give the same bits.
void adamw_step(std::span<const AdamwTensor> tensors, const AdamwStep& step, int threads,
                const SimdLevel& level = simd_levels().front());

}  // namespace heddle
