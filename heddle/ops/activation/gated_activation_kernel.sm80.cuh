// f(gate) * up of pairs that lie side by side, eight pairs at a time.
#pragma once

#include "heddle/kit/kernel.cuh"
#include "heddle/kit/rows/stretch.cuh"
#include "heddle/kit/rows/vec8.cuh"
#include "heddle/ops/activation/gated_activation.h"

namespace heddle::device::gated_activation {

#include "heddle/ops/activation/activate.cuh"

struct KernelConfig {
  static constexpr u32 kThreads = 256;
  static constexpr i32 kWords = 2, kFlat = 0, kKind = 0;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kWords = Config::kWords;
  static constexpr DType kX = Config::types().x.dtype, kY = Config::types().y.dtype;
  struct In {
    Vec8<kX> pairs[2];
  };

  static void run(const GatedActivation& a, const TensorMap*, u8*) {
    const Stretch stretch = Stretch::of_cta<Config::kFlat != 0>(kWords * kThreads, a.y);
    stretch.walk<kThreads, kWords>(
        [&](i64 at) {
          In in;
          in.pairs[0].load(row_of(a.x, stretch.row), 2 * at);
          in.pairs[1].load(row_of(a.x, stretch.row), 2 * at + 1);
          return in;
        },
        [&](i64 at, const In& in) {
          Vec8<kY>::of([&](i32 i) {
            const Vec8<kX>& four = in.pairs[i / 4];
            return activate(Config::kKind, four.get(2 * i % 8)) * four.get(2 * i % 8 + 1);
          }).store(row_of(a.y, stretch.row), at);
        });
  }
};

}  // namespace heddle::device::gated_activation
