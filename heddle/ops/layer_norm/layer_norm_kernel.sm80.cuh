// The norm of rows that lie in registers.
#pragma once

#include "heddle/kit/kernel.cuh"
#include "heddle/kit/rows/row_share.cuh"
#include "heddle/kit/rows/row_team.cuh"
#include "heddle/kit/rows/vec8.cuh"
#include "heddle/ops/layer_norm/layer_norm.h"

namespace heddle::device::layer_norm {

struct KernelConfig {
  static constexpr u32 kThreads = 256, kRowThreads = 256;
  static constexpr i32 kWords = 4, kCluster = 1, kRows = 1, kShare = kVec8;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kWords = Config::kWords, kRows = Config::kRows;
  static constexpr DType kIn = Config::types().x.dtype, kWeight = Config::types().weight.dtype,
                         kBias = Config::types().bias.dtype, kOut = Config::types().y.dtype;
  static constexpr bool kHasBias = Config::types().bias.rank > 0;
  using Team = RowTeam<kThreads, Config::kRowThreads, Config::kCluster>;
  using Row = RowShare<Team, Config::kShare>;
  template <DType kType>
  using Word = typename Row::template Word<kType>;

  // Weights of wide rows come when they are needed: with fewer registers, a multiprocessor has more rows at once.
  static constexpr bool kLate = (kThreads >= 512 || Config::kCluster > 1) &&
                                kWords * 8 * (Config::kShare == kElements ? 4 : size_of(kIn)) >= 64;
  static constexpr u32 kCtas = kLate && kThreads < 1024 ? 1024 / kThreads : 1;

  static void run(const LayerNorm& a, const TensorMap*, u8*) {
    const typename Team::template Rows<kRows> rows(a.x);
    const i32 columns = rows.elements[0];  // as many as the others have, if any
    Word<kIn> values[kRows][kWords];
    Word<kWeight> weights[kWords];
    Word<kBias> biases[kWords];          // zeros where there is none
    const auto each = [&](auto&& use) {  // use(r, n, at) for the words of all rows
#pragma unroll
      for (i32 r = 0; r < kRows; ++r)
        Row::template each<kWords>(rows.elements[r], [&](i32 n, i32 at) { use(r, n, at); });
    };
    each([&](i32 r, i32 n, i32 at) { values[r][n].load(row_of(a.x, rows.row[r]), at, columns); });
    const auto load_weights = [&](i32 n, i32 at) {
      weights[n].load_kept(a.weight.data, at, columns);
      if constexpr (kHasBias) biases[n].load_kept(a.bias.data, at, columns);
    };
    if constexpr (!kLate) Row::template each<kWords>(columns, load_weights);
    Team::meet();
    float means[kRows] = {}, scales[kRows] = {};
    each([&](i32 r, i32 n, i32) {
#pragma unroll
      for (i32 i = 0; i < 8; ++i) means[r] += values[r][n].get(i);
    });
    Team::reduce(Sum(), means);
#pragma unroll
    for (float& mean : means) mean /= float(columns);
    each([&](i32 r, i32 n, i32) {
#pragma unroll
      for (i32 i = 0; i < 8; ++i) {
        const float off = values[r][n].has(i) ? values[r][n].get(i) - means[r] : 0.0f;
        scales[r] = fma(off, off, scales[r]);
      }
    });
    Team::reduce(Sum(), scales, 1);
#pragma unroll
    for (float& scale : scales) scale = rsqrt(scale / float(columns) + a.eps);
    each([&](i32 r, i32 n, i32 at) {
      if constexpr (kLate) load_weights(n, at);
      Word<kOut>::of([&](i32 i) {
        return fma((values[r][n].get(i) - means[r]) * scales[r], weights[n].get(i),
                   kHasBias ? biases[n].get(i) : 0.0f);
      }).store(row_of(a.y, rows.row[r]), at, columns);
    });
  }
};

}  // namespace heddle::device::layer_norm
