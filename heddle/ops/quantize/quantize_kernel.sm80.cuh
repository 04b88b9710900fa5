// Codes of rows in registers. Sixteen neighbouring lanes have the 128 elements of a block.
#pragma once

#include "heddle/kit/arch/numbers.cuh"
#include "heddle/kit/kernel.cuh"
#include "heddle/kit/rows/row_team.cuh"
#include "heddle/kit/rows/vec8.cuh"
#include "heddle/ops/quantize/quantize.h"

namespace heddle::device::quantize {

#include "heddle/ops/quantize/encode.cuh"
#include "heddle/ops/quantize/encode_kernel.cuh"

struct KernelConfig {
  static constexpr u32 kThreads = 256, kRowThreads = 256;
  static constexpr i32 kWords = 4, kKind = 0;  // kKind: ScaleKind and 2 * CodeKind
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kWords = Config::kWords, kCode = Config::kKind / 2;
  static constexpr DType kIn = Config::types().x.dtype;
  using Team = RowTeam<kThreads, Config::kRowThreads>;

  static void run(const Quantize& a, const TensorMap*, u8*) {
    const i32 row = Team::row(), eights = Team::eights(a.x);
    Vec8<kIn> values[kWords];
    float most[kWords] = {};
    Team::template each<kWords>(eights, [&](i32 n, i32 at) { values[n].load(row_of(a.x, row), at); });
#pragma unroll
    for (i32 n = 0; n < kWords; ++n)
#pragma unroll
      for (i32 i = 0; i < 8; ++i) most[n] = arch::max_or_nan(most[n], fabsf(values[n].get(i)));
    float* const scales = reinterpret_cast<float*>(row_of(a.scales, row));
    if constexpr (Config::kKind % 2 == kScaleByRow) {
      float all = most[0];
#pragma unroll
      for (i32 n = 1; n < kWords; ++n) all = arch::max_or_nan(all, most[n]);
      all = Team::reduce(Max(), all);
#pragma unroll
      for (i32 n = 0; n < kWords; ++n) most[n] = all;
      if (Team::thread() == 0 && eights > 0) scales[0] = scale_for(all, kCode);
    } else {
#pragma unroll
      for (i32 n = 0; n < kWords; ++n)
#pragma unroll
        for (i32 bits = Team::kLanes < 16 ? Team::kLanes / 2 : 8; bits > 0; bits /= 2)
          most[n] = arch::max_or_nan(most[n], __shfl_xor_sync(~0u, most[n], bits));
    }
    Team::template each<kWords>(eights, [&](i32 n, i32 at) {
      const float scale = scale_for(most[n], kCode);
      if (Config::kKind % 2 != kScaleByRow && at % 16 == 0) scales[at / 16] = scale;
      store_codes<kCode>(row_of(a.codes, row), at, 1 / scale, [&](i32 i) { return values[n].get(i); });
    });
  }
};

}  // namespace heddle::device::quantize
