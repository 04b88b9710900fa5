// The norm of sums of rows, in registers.
#pragma once

#include "heddle/kit/kernel.cuh"
#include "heddle/kit/rows/row_share.cuh"
#include "heddle/kit/rows/row_team.cuh"
#include "heddle/kit/rows/vec8.cuh"
#include "heddle/ops/rms_norm/rms_norm_residual.h"

namespace heddle::device::rms_norm_residual {

struct KernelConfig {
  static constexpr u32 kThreads = 256, kRowThreads = 256;
  static constexpr i32 kWords = 4, kCluster = 1, kShare = kVec8;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kWords = Config::kWords;
  static constexpr DType kIn = Config::types().x.dtype, kResidual = Config::types().residual.dtype,
                         kWeight = Config::types().weight.dtype, kSum = Config::types().sum.dtype,
                         kOut = Config::types().y.dtype;
  using Team = RowTeam<kThreads, Config::kRowThreads, Config::kCluster>;
  using Row = RowShare<Team, Config::kShare>;
  template <DType kType>
  using Word = typename Row::template Word<kType>;

  static void run(const RmsNormResidual& a, const TensorMap*, u8*) {
    const i32 row = Team::row(), columns = Team::elements(a.x);
    Word<kIn> values[kWords];
    Word<kResidual> residual[kWords];
    Word<kSum> sums[kWords];
    Row::template each<kWords>(columns, [&](i32 n, i32 at) {
      values[n].load(row_of(a.x, row), at, columns), residual[n].load(row_of(a.residual, row), at, columns);
    });
    Team::meet();
    float squares = 0;
    Row::template each<kWords>(columns, [&](i32 n, i32 at) {
      sums[n] = Word<kSum>::of([&](i32 i) { return values[n].get(i) + residual[n].get(i); });
      sums[n].store(row_of(a.sum, row), at, columns);
#pragma unroll
      for (i32 i = 0; i < 8; ++i) squares = fma(sums[n].get(i), sums[n].get(i), squares);
    });
    Word<kWeight> weights[kWords];
    Row::template each<kWords>(columns,
                               [&](i32 n, i32 at) { weights[n].load_kept(a.weight.data, at, columns); });
    const float scale = rsqrt(Team::reduce(Sum(), squares) / float(columns) + a.eps);
    Row::template each<kWords>(columns, [&](i32 n, i32 at) {
      Word<kOut>::of([&](i32 i) {
        return sums[n].get(i) * scale * weights[n].get(i);
      }).store(row_of(a.y, row), at, columns);
    });
  }
};

}  // namespace heddle::device::rms_norm_residual
