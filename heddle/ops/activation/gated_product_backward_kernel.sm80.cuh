// The gradients of f(gate) * up, eight elements at a time.
#pragma once

#include "heddle/kit/kernel.cuh"
#include "heddle/kit/rows/stretch.cuh"
#include "heddle/kit/rows/vec8.cuh"
#include "heddle/ops/activation/gated_product_backward.h"

namespace heddle::device::gated_product_backward {

#include "heddle/ops/activation/activate.cuh"

struct KernelConfig {
  static constexpr u32 kThreads = 256;
  static constexpr i32 kWords = 2, kFlat = 0, kKind = 0;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kWords = Config::kWords;
  static constexpr DType kGate = Config::types().gate.dtype, kUp = Config::types().up.dtype,
                         kDy = Config::types().dy.dtype, kDgate = Config::types().dgate.dtype,
                         kDup = Config::types().dup.dtype;
  struct In {
    Vec8<kGate> gate;
    Vec8<kUp> up;
    Vec8<kDy> dy;
  };

  static void run(const GatedProductBackward& a, const TensorMap*, u8*) {
    const Stretch stretch = Stretch::of_cta<Config::kFlat != 0>(kWords * kThreads, a.gate);
    stretch.walk<kThreads, kWords>(
        [&](i64 at) {
          In in;
          in.gate.load(row_of(a.gate, stretch.row), at);
          in.up.load(row_of(a.up, stretch.row), at);
          in.dy.load(row_of(a.dy, stretch.row), at);
          return in;
        },
        [&](i64 at, const In& in) {
          Vec8<kDgate>::of([&](i32 i) {
            return in.dy.get(i) * in.up.get(i) * activation_slope(Config::kKind, in.gate.get(i));
          }).store(row_of(a.dgate, stretch.row), at);
          Vec8<kDup>::of([&](i32 i) {
            return in.dy.get(i) * activate(Config::kKind, in.gate.get(i));
          }).store(row_of(a.dup, stretch.row), at);
        });
  }
};

}  // namespace heddle::device::gated_product_backward
