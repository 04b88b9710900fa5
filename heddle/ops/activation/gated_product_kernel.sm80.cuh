// f(gate) * up, element by element.
#pragma once

#include "heddle/kit/kernel.cuh"
#include "heddle/kit/rows/elements.cuh"
#include "heddle/kit/rows/stretch.cuh"
#include "heddle/ops/activation/gated_product.h"

namespace heddle::device::gated_product {

#include "heddle/ops/activation/activate.cuh"

struct KernelConfig {
  static constexpr u32 kThreads = 256;
  static constexpr i32 kWords = 2, kFlat = 0, kKind = 0;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr DType kY = Config::types().y.dtype, kGate = Config::types().gate.dtype,
                         kUp = Config::types().up.dtype;

  static void run(const GatedProduct& a, const TensorMap*, u8*) {
    map_elements<Config>([](float gate, float up) { return activate(Config::kKind, gate) * up; },
                         Typed<kY>{a.y}, Typed<kGate>{a.gate}, Typed<kUp>{a.up});
  }
};

}  // namespace heddle::device::gated_product
