// dx of rows in registers. A CTA, or a cluster for wide rows, has the rows of one part and keeps its sum of dweight in registers; the
// next rows are on their way while these are worked on.
#pragma once

#include "heddle/kit/kernel.cuh"
#include "heddle/kit/rows/row_share.cuh"
#include "heddle/kit/rows/row_team.cuh"
#include "heddle/kit/rows/rows_ahead.cuh"
#include "heddle/kit/rows/vec8.cuh"
#include "heddle/ops/rms_norm/rms_norm_backward.h"

namespace heddle::device::rms_norm_backward {

struct KernelConfig {
  static constexpr u32 kThreads = 512, kRowThreads = 512;
  static constexpr i32 kWords = 2, kCluster = 1, kPlaces = 4, kRows = 2, kShare = kVec8;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kWords = Config::kWords, kRows = Config::kRows;
  static constexpr DType kX = Config::types().x.dtype, kWeight = Config::types().weight.dtype,
                         kDy = Config::types().dy.dtype, kDsum = Config::types().dsum.dtype,
                         kDx = Config::types().dx.dtype;
  static constexpr bool kHasSum = Config::types().dsum.rank > 0;
  using Team = RowTeam<kThreads, Config::kRowThreads, Config::kCluster>;
  using Row = RowShare<Team, Config::kShare, kWords>;
  template <DType kType>
  using Word = typename Row::template Word<kType>;
  using Ahead = PartAhead<Team, Config, 1, kX, kDy>;

  static void run(const RmsNormBackward& a, const TensorMap*, u8*) {
    Ahead ahead{a.x, a.dy, i32(blockIdx.x / Config::kCluster), a.parts()};
    const i32 columns = a.x.size[1], steps = ahead.steps;
    float parts[kWords][8] = {};
    Word<kWeight> weights[kWords];
    ahead.fetch_first();
    Row::template each<kWords>(columns,
                               [&](i32 n, i32 at) { weights[n].load_kept(a.weight.data, at, columns); });
    Team::meet();
    Row::settle(weights);
#pragma unroll 1
    for (i32 step = 0; step < steps; step += kRows) {
      Word<kX> all_x[kRows][kWords];
      Word<kDy> all_dy[kRows][kWords];
      ahead.take(step, all_x, all_dy);
      float sums[2 * kRows] = {};  // the sums of squares, and of x * dy * weight, row by row
#pragma unroll
      for (i32 r = 0; r < kRows; ++r)
        Row::template each<kWords>(ahead.elements(step + r), [&](i32 n, i32) {
          const Word<kX>& x = all_x[r][n];
          const Word<kDy>& dy = all_dy[r][n];
#pragma unroll
          for (i32 i = 0; i < 8; ++i) {
            sums[2 * r] = fma(x.get(i), x.get(i), sums[2 * r]);
            sums[2 * r + 1] = fma(x.get(i), dy.get(i) * weights[n].get(i), sums[2 * r + 1]);
          }
        });
      Team::reduce(Sum(), sums, u32(step / kRows));
#pragma unroll
      for (i32 r = 0; r < kRows; ++r) {
        const i32 row = ahead.number(step + r);
        const float scale = rsqrt(sums[2 * r] / float(columns) + a.eps);
        const float along = sums[2 * r + 1] / float(columns) * scale * scale;
        Row::template each<kWords>(ahead.elements(step + r), [&](i32 n, i32 at) {
          const Word<kX>& x = all_x[r][n];
          const Word<kDy>& dy = all_dy[r][n];
          Word<kDsum> more;
          if constexpr (kHasSum) more.load(row_of(a.dsum, row), at, columns);
          Word<kDx>::of([&](i32 i) {
            return fma(dy.get(i) * weights[n].get(i) - x.get(i) * along, scale, kHasSum ? more.get(i) : 0.0f);
          }).store(row_of(a.dx, row), at, columns);
#pragma unroll
          for (i32 i = 0; i < 8; ++i) parts[n][i] = fma(dy.get(i), x.get(i) * scale, parts[n][i]);
        });
        Row::template finish<kDx>(row_of(a.dx, row), ahead.elements(step + r));
      }
    }
    ahead.template store<Row>(a.dweight_parts, parts);
  }
};

}  // namespace heddle::device::rms_norm_backward
