// A step of AdamW, eight elements at a time: each is read once and written once.
#pragma once

#include "heddle/kit/kernel.cuh"
#include "heddle/kit/rows/stretch.cuh"
#include "heddle/kit/rows/vec8.cuh"
#include "heddle/ops/adamw/adamw.h"

namespace heddle::device::adamw {

#include "heddle/tile/adamw_factors.cuh"

struct KernelConfig {
  static constexpr u32 kThreads = 256;
  static constexpr i32 kWords = 1, kFlat = 0;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kWords = Config::kWords;
  static constexpr DType kParam = Config::types().param.dtype, kGrad = Config::types().grad.dtype,
                         kM = Config::types().m.dtype, kV = Config::types().v.dtype;
  struct In {
    Vec8<kParam> param;
    Vec8<kGrad> grad;
    Vec8<kM> m;
    Vec8<kV> v;
  };

  static void run(const Adamw& a, const TensorMap*, u8*) {
    const Stretch stretch = Stretch::of_cta<Config::kFlat != 0>(kWords * kThreads, a.param);
    const Factors factors(a);
    const auto at_row = [&](const Tensor& tensor) { return row_of(tensor, stretch.row); };
    stretch.walk<kThreads, kWords>(
        [&](i64 at) {
          In in;
          in.param.load(at_row(a.param), at), in.grad.load(at_row(a.grad), at);
          in.m.load(at_row(a.m), at), in.v.load(at_row(a.v), at);
          return in;
        },
        [&](i64 at, const In& in) {
          float mean[8], square[8];
#pragma unroll
          for (i32 i = 0; i < 8; ++i) {
            const float g = in.grad.get(i) * factors.grad_scale;
            mean[i] = factors.mean(in.m.get(i), g), square[i] = factors.square(in.v.get(i), g);
          }
          Vec8<Config::types().new_m.dtype>::of([&](i32 i) { return mean[i]; }).store(at_row(a.new_m), at);
          Vec8<Config::types().new_v.dtype>::of([&](i32 i) { return square[i]; }).store(at_row(a.new_v), at);
          Vec8<Config::types().new_param.dtype>::of([&](i32 i) {
            return factors.param(in.param.get(i), mean[i], square[i]);
          }).store(at_row(a.new_param), at);
        });
  }
};

}  // namespace heddle::device::adamw
