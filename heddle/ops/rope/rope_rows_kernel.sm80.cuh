// Rotations of rows, eight elements at a time.
#pragma once

#include "heddle/kit/kernel.cuh"
#include "heddle/kit/rows/vec8.cuh"
#include "heddle/ops/rope/rope_rows.h"

namespace heddle::device::rope_rows {

#include "heddle/ops/rope/turn_rows.cuh"

struct KernelConfig {
  static constexpr u32 kThreads = 256;
  static constexpr i32 kWords = 1;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;

  static void run(const RopeRows& a, const TensorMap*, u8*) {
    turn_rows<Config, Config::types().x.dtype, Config::types().y.dtype>(
        a, a.x, a.y, 1.0f, i32(blockIdx.x * Config::kWords * kThreads + threadIdx.x));
  }
};

}  // namespace heddle::device::rope_rows
