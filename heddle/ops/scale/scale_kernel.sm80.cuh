// y = factor * x, element by element.
#pragma once

#include "heddle/kit/kernel.cuh"
#include "heddle/kit/rows/elements.cuh"
#include "heddle/kit/rows/stretch.cuh"
#include "heddle/ops/scale/scale.h"

namespace heddle::device::scale {

struct KernelConfig {
  static constexpr u32 kThreads = 256;
  static constexpr i32 kWords = 2, kFlat = 0;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr DType kY = Config::types().y.dtype, kX = Config::types().x.dtype;

  static void run(const Scale& a, const TensorMap*, u8*) {
    map_elements<Config>([factor = a.factor](float x) { return x * factor; }, Typed<kY>{a.y}, Typed<kX>{a.x});
  }
};

}  // namespace heddle::device::scale
