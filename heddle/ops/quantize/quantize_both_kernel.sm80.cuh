// Codes of squares of 128 x 128 in both layouts, from one read, with a scale for the 128 elements of each line.
#pragma once

#include "heddle/kit/arch/numbers.cuh"
#include "heddle/kit/kernel.cuh"
#include "heddle/ops/quantize/quantize_both.h"
#include "heddle/ops/quantize/square_codes_kernel.sm80.cuh"

namespace heddle::device::quantize_both {

using square_codes::kLines, square_codes::kPasses, square_codes::kSide, square_codes::scale_for;

struct KernelConfig {
  static constexpr i32 kRows = 128, kColumns = 128, kKind = 0;  // kKind: CodeKind
};

template <class Config>
struct Kernel {
  static constexpr i32 kCode = Config::kKind;
  using Codes = square_codes::SquareCodes<Config::types().x.dtype, kCode>;
  static constexpr u32 kThreads = Codes::kThreads;

  static void run(const QuantizeBoth& a, const TensorMap*, u8*) {
    __shared__ __align__(16) u8 turned[kSide * kSide];
    __shared__ float tops[kLines][kSide];
    const Codes x(a.x);
    float most[8] = {};
#pragma unroll
    for (i32 n = 0; n < kPasses; ++n) {
      float top = 0;
#pragma unroll
      for (i32 i = 0; i < 8; ++i) {
        const float size = fabsf(x.values[n].get(i));
        top = arch::max_or_nan(top, size), most[i] = arch::max_or_nan(most[i], size);
      }
#pragma unroll
      for (i32 bits = 8; bits > 0; bits /= 2) top = arch::max_or_nan(top, __shfl_xor_sync(~0u, top, bits));
      if (!x.has(n)) continue;
      const float scale = scale_for(top, kCode);
      if (x.word == 0) reinterpret_cast<float*>(row_of(a.scales, x.row(n)))[x.across] = scale;
      x.store_row(a.codes, n, 1 / scale);
    }
#pragma unroll
    for (i32 i = 0; i < 8; ++i) tops[x.line][8 * x.word + i] = most[i];
    __syncthreads();
#pragma unroll
    for (i32 i = 0; i < 8; ++i) {
      float top = 0;
#pragma unroll
      for (i32 l = 0; l < kLines; ++l) top = arch::max_or_nan(top, tops[l][8 * x.word + i]);
      const float scale = scale_for(top, kCode);
      if (x.line == 0 && x.column(i) < x.columns)
        reinterpret_cast<float*>(row_of(a.transposed_scales, x.column(i)))[x.square] = scale;
      x.turn(turned, i, 1 / scale);
    }
    __syncthreads();
    x.store_turned(turned, a.transposed);
  }
};

}  // namespace heddle::device::quantize_both
