// A copy in words, also to another element type.
#pragma once

#include "heddle/kit/kernel.cuh"
#include "heddle/kit/rows/elements.cuh"
#include "heddle/kit/rows/stretch.cuh"
#include "heddle/ops/copy/copy.h"

namespace heddle::device::copy {

struct KernelConfig {
  static constexpr u32 kThreads = 256;
  static constexpr i32 kWords = 2, kFlat = 0;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr DType kX = Config::types().x.dtype, kY = Config::types().y.dtype;

  static void run(const Copy& a, const TensorMap*, u8*) {
    map_elements<Config>([](float x) { return x; }, Typed<kY>{a.y}, Typed<kX>{a.x});
  }
};

}  // namespace heddle::device::copy
