// The gradients of f(gate) * up of pairs that lie side by side, eight pairs at a time.
#pragma once

#include "heddle/kit/kernel.cuh"
#include "heddle/kit/rows/stretch.cuh"
#include "heddle/kit/rows/vec8.cuh"
#include "heddle/ops/activation/gated_activation_backward.h"

namespace heddle::device::gated_activation_backward {

#include "heddle/ops/activation/activate.cuh"

struct KernelConfig {
  static constexpr u32 kThreads = 256;
  static constexpr i32 kWords = 1, kFlat = 0, kKind = 0;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kWords = Config::kWords;
  static constexpr DType kX = Config::types().x.dtype, kDy = Config::types().dy.dtype,
                         kDx = Config::types().dx.dtype;
  struct In {
    Vec8<kX> pairs[2];
    Vec8<kDy> dy;
  };

  static void run(const GatedActivationBackward& a, const TensorMap*, u8*) {
    const Stretch stretch = Stretch::of_cta<Config::kFlat != 0>(kWords * kThreads, a.dy);
    stretch.walk<kThreads, kWords>(
        [&](i64 at) {
          In in;
          in.pairs[0].load(row_of(a.x, stretch.row), 2 * at);
          in.pairs[1].load(row_of(a.x, stretch.row), 2 * at + 1);
          in.dy.load(row_of(a.dy, stretch.row), at);
          return in;
        },
        [&](i64 at, const In& in) {
#pragma unroll
          for (i32 half = 0; half < 2; ++half) {
            const Vec8<kX>& four = in.pairs[half];
            Vec8<kDx>::of([&](i32 i) {
              const float given = in.dy.get(4 * half + i / 2), gate = four.get(i / 2 * 2);
              return i % 2 == 0 ? given * four.get(i / 2 * 2 + 1) * activation_slope(Config::kKind, gate)
                                : given * activate(Config::kKind, gate);
            }).store(row_of(a.dx, stretch.row), 2 * at + half);
          }
        });
  }
};

}  // namespace heddle::device::gated_activation_backward
