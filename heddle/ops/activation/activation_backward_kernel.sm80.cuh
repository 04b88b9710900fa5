// The gradient of an activation, element by element.
#pragma once

#include "heddle/kit/kernel.cuh"
#include "heddle/kit/rows/elements.cuh"
#include "heddle/kit/rows/stretch.cuh"
#include "heddle/ops/activation/activation_backward.h"

namespace heddle::device::activation_backward {

#include "heddle/ops/activation/activate.cuh"

struct KernelConfig {
  static constexpr u32 kThreads = 256;
  static constexpr i32 kWords = 2, kFlat = 0, kKind = 0;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr DType kDx = Config::types().dx.dtype, kX = Config::types().x.dtype,
                         kDy = Config::types().dy.dtype;

  static void run(const ActivationBackward& a, const TensorMap*, u8*) {
    map_elements<Config>([](float x, float dy) { return dy * activation_slope(Config::kKind, x); },
                         Typed<kDx>{a.dx}, Typed<kX>{a.x}, Typed<kDy>{a.dy});
  }
};

}  // namespace heddle::device::activation_backward
