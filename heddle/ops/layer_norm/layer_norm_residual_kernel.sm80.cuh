// The norm of sums of rows, in registers.
#pragma once

#include "heddle/kit/kernel.cuh"
#include "heddle/kit/rows/row_share.cuh"
#include "heddle/kit/rows/row_team.cuh"
#include "heddle/kit/rows/vec8.cuh"
#include "heddle/ops/layer_norm/layer_norm_residual.h"

namespace heddle::device::layer_norm_residual {

struct KernelConfig {
  static constexpr u32 kThreads = 256, kRowThreads = 256;
  static constexpr i32 kWords = 4, kCluster = 1, kShare = kVec8;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kWords = Config::kWords;
  static constexpr DType kIn = Config::types().x.dtype, kResidual = Config::types().residual.dtype,
                         kWeight = Config::types().weight.dtype, kBias = Config::types().bias.dtype,
                         kSum = Config::types().sum.dtype, kOut = Config::types().y.dtype;
  static constexpr bool kHasBias = Config::types().bias.rank > 0;
  using Team = RowTeam<kThreads, Config::kRowThreads, Config::kCluster>;
  using Row = RowShare<Team, Config::kShare>;
  template <DType kType>
  using Word = typename Row::template Word<kType>;

  static void run(const LayerNormResidual& a, const TensorMap*, u8*) {
    const i32 row = Team::row(), columns = Team::elements(a.x);
    Word<kIn> values[kWords];
    Word<kResidual> residual[kWords];
    Word<kSum> sums[kWords];
    Row::template each<kWords>(columns, [&](i32 n, i32 at) {
      values[n].load(row_of(a.x, row), at, columns), residual[n].load(row_of(a.residual, row), at, columns);
    });
    Team::meet();
    float total = 0, squares = 0;
    Row::template each<kWords>(columns, [&](i32 n, i32 at) {
      sums[n] = Word<kSum>::of([&](i32 i) { return values[n].get(i) + residual[n].get(i); });
      sums[n].store(row_of(a.sum, row), at, columns);
#pragma unroll
      for (i32 i = 0; i < 8; ++i) total += sums[n].get(i);
    });
    Word<kWeight> weights[kWords];
    Word<kBias> biases[kWords];
    Row::template each<kWords>(columns,
                               [&](i32 n, i32 at) { weights[n].load_kept(a.weight.data, at, columns); });
    if constexpr (kHasBias)
      Row::template each<kWords>(columns,
                                 [&](i32 n, i32 at) { biases[n].load_kept(a.bias.data, at, columns); });
    const float mean = Team::reduce(Sum(), total) / float(columns);
    Row::template each<kWords>(columns, [&](i32 n, i32) {
#pragma unroll
      for (i32 i = 0; i < 8; ++i) {
        const float off = values[n].has(i) ? sums[n].get(i) - mean : 0.0f;
        squares = fma(off, off, squares);
      }
    });
    const float scale = rsqrt(Team::reduce(Sum(), squares, 1) / float(columns) + a.eps);
    Row::template each<kWords>(columns, [&](i32 n, i32 at) {
      Word<kOut>::of([&](i32 i) {
        return fma((sums[n].get(i) - mean) * scale, weights[n].get(i), kHasBias ? biases[n].get(i) : 0.0f);
      }).store(row_of(a.y, row), at, columns);
    });
  }
};

}  // namespace heddle::device::layer_norm_residual
