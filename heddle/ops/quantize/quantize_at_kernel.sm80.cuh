// Codes of squares of 128 x 128 in both layouts, from one read, at scales that are there.
#pragma once

#include "heddle/kit/kernel.cuh"
#include "heddle/ops/quantize/quantize_at.h"
#include "heddle/ops/quantize/square_codes_kernel.sm80.cuh"

namespace heddle::device::quantize_at {

using square_codes::kPasses, square_codes::kSide;

struct KernelConfig {
  static constexpr i32 kRows = 128, kColumns = 128, kKind = 0;  // kKind: CodeKind
};

template <class Config>
struct Kernel {
  using Codes = square_codes::SquareCodes<Config::types().x.dtype, Config::kKind>;
  static constexpr u32 kThreads = Codes::kThreads;

  static void run(const QuantizeAt& a, const TensorMap*, u8*) {
    __shared__ __align__(16) u8 turned[kSide * kSide];
    const Codes x(a.x);
#pragma unroll
    for (i32 n = 0; n < kPasses; ++n)
      if (x.has(n)) x.store_row(a.codes, n, 1 / scale_of(a.scales, x.row(n), x.rows, x.across));
    if (x.at < x.columns / 8) {
#pragma unroll
      for (i32 i = 0; i < 8; ++i)
        x.turn(turned, i, 1 / scale_of(a.transposed_scales, x.column(i), x.columns, x.square));
    }
    __syncthreads();
    x.store_turned(turned, a.transposed);
  }
  static float scale_of(const Tensor& scales, i32 line, i32 lines, i32 block) {
    const i32 place = place_of_scale(line, scales.size[0], lines);
    return reinterpret_cast<const float*>(row_of(scales, place))[scales.size[1] == 1 ? 0 : block];
  }
};

}  // namespace heddle::device::quantize_at
