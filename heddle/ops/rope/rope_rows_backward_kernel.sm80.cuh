// Rotations of rows, eight elements at a time, the other way.
#pragma once

#include "heddle/kit/kernel.cuh"
#include "heddle/kit/rows/vec8.cuh"
#include "heddle/ops/rope/rope_rows_backward.h"

namespace heddle::device::rope_rows_backward {

#include "heddle/ops/rope/turn_rows.cuh"

struct KernelConfig {
  static constexpr u32 kThreads = 256;
  static constexpr i32 kWords = 1;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;

  static void run(const RopeRowsBackward& a, const TensorMap*, u8*) {
    turn_rows<Config, Config::types().dy.dtype, Config::types().dx.dtype>(
        a, a.dy, a.dx, -1.0f, i32(blockIdx.x * Config::kWords * kThreads + threadIdx.x));
  }
};

}  // namespace heddle::device::rope_rows_backward
