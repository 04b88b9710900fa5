// The norm of rows that lie in registers.
#pragma once

#include "heddle/kit/kernel.cuh"
#include "heddle/kit/rows/row_share.cuh"
#include "heddle/kit/rows/row_team.cuh"
#include "heddle/kit/rows/vec8.cuh"
#include "heddle/ops/rms_norm/rms_norm.h"

namespace heddle::device::rms_norm {

struct KernelConfig {
  static constexpr u32 kThreads = 256, kRowThreads = 256;
  static constexpr i32 kWords = 4, kCluster = 1, kShare = kVec8;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kWords = Config::kWords;
  static constexpr DType kIn = Config::types().x.dtype, kWeight = Config::types().weight.dtype,
                         kOut = Config::types().y.dtype;
  using Team = RowTeam<kThreads, Config::kRowThreads, Config::kCluster>;
  using Row = RowShare<Team, Config::kShare>;
  template <DType kType>
  using Word = typename Row::template Word<kType>;

  // A cluster's weights come when they are needed: with fewer registers, a multiprocessor has more rows at once.
  static constexpr bool kLate = Config::kCluster > 1;
  static constexpr u32 kCtas = kLate ? 1024 / kThreads : 1;

  static void run(const RmsNorm& a, const TensorMap*, u8*) {
    const i32 row = Team::row(), columns = Team::elements(a.x);
    Word<kIn> values[kWords];
    Word<kWeight> weights[kWords];
    Row::template each<kWords>(columns,
                               [&](i32 n, i32 at) { values[n].load(row_of(a.x, row), at, columns); });
    const auto load_weights = [&](i32 n, i32 at) { weights[n].load_kept(a.weight.data, at, columns); };
    if constexpr (!kLate) Row::template each<kWords>(columns, load_weights);
    Team::meet();
    float squares = 0;
    Row::template each<kWords>(columns, [&](i32 n, i32) {
#pragma unroll
      for (i32 i = 0; i < 8; ++i) squares = fma(values[n].get(i), values[n].get(i), squares);
    });
    const float scale = rsqrt(Team::reduce(Sum(), squares) / float(columns) + a.eps);
    Row::template each<kWords>(columns, [&](i32 n, i32 at) {
      if constexpr (kLate) load_weights(n, at);
      Word<kOut>::of([&](i32 i) {
        return values[n].get(i) * scale * weights[n].get(i);
      }).store(row_of(a.y, row), at, columns);
    });
  }
};

}  // namespace heddle::device::rms_norm
