// y = a * b, element by element.
#pragma once

#include "heddle/kit/kernel.cuh"
#include "heddle/kit/rows/elements.cuh"
#include "heddle/kit/rows/stretch.cuh"
#include "heddle/ops/multiply/multiply.h"

namespace heddle::device::multiply {

struct KernelConfig {
  static constexpr u32 kThreads = 256;
  static constexpr i32 kWords = 2, kFlat = 0;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr DType kY = Config::types().y.dtype, kA = Config::types().a.dtype,
                         kB = Config::types().b.dtype;

  static void run(const Multiply& a, const TensorMap*, u8*) {
    map_elements<Config>([](float a, float b) { return a * b; }, Typed<kY>{a.y}, Typed<kA>{a.a},
                         Typed<kB>{a.b});
  }
};

}  // namespace heddle::device::multiply
