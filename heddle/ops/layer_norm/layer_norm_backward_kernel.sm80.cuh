// dx of rows in registers. A CTA, or a cluster for wide rows, has the rows of one part and keeps its sums of dweight and dbias in
// registers; the next rows are on their way while these are worked on.
#pragma once

#include "heddle/kit/kernel.cuh"
#include "heddle/kit/rows/row_share.cuh"
#include "heddle/kit/rows/row_team.cuh"
#include "heddle/kit/rows/rows_ahead.cuh"
#include "heddle/kit/rows/vec8.cuh"
#include "heddle/ops/layer_norm/layer_norm_backward.h"

namespace heddle::device::layer_norm_backward {

struct KernelConfig {
  static constexpr u32 kThreads = 512, kRowThreads = 512;
  static constexpr i32 kWords = 2, kCluster = 1, kPlaces = 4, kRows = 1, kShare = kVec8;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr u32 kCtas = kThreads < 512 ? 512 / kThreads : 1;  // at most 128 registers
  static constexpr i32 kWords = Config::kWords, kRows = Config::kRows;
  static constexpr DType kX = Config::types().x.dtype, kWeight = Config::types().weight.dtype,
                         kDy = Config::types().dy.dtype, kDsum = Config::types().dsum.dtype,
                         kDx = Config::types().dx.dtype;
  static constexpr bool kHasSum = Config::types().dsum.rank > 0;
  using Team = RowTeam<kThreads, Config::kRowThreads, Config::kCluster>;
  using Row = RowShare<Team, Config::kShare, kWords>;
  template <DType kType>
  using Word = typename Row::template Word<kType>;
  using Ahead = PartAhead<Team, Config, 2, kX, kDy>;

  static void run(const LayerNormBackward& a, const TensorMap*, u8*) {
    Ahead ahead{a.x, a.dy, i32(blockIdx.x / Config::kCluster), a.parts()};
    const i32 columns = a.x.size[1], steps = ahead.steps;
    const float share = 1 / float(columns);
    float dweight[kWords][8] = {}, dbias[kWords][8] = {};
    Word<kWeight> weights[kWords];
    const auto add = [&](i32 step, float& of_x, float& of_g) {
      if (step >= steps) return;
      ahead.each(step, [&](i32 n, const auto& x, const auto& dy) {
#pragma unroll
        for (i32 i = 0; i < 8; ++i) of_x += x.get(i), of_g = fma(dy.get(i), weights[n].get(i), of_g);
      });
    };
    ahead.fetch_first();
    Row::template each<kWords>(columns,
                               [&](i32 n, i32 at) { weights[n].load_kept(a.weight.data, at, columns); });
    Team::meet();
    Row::settle(weights);
    float first[2 * kRows] = {};  // the sums of x, and of g = dy * weight, row by row
    ahead.wait();
#pragma unroll
    for (i32 r = 0; r < kRows; ++r) add(r, first[2 * r], first[2 * r + 1]);
    Team::reduce(Sum(), first, 0);
    float means[2 * kRows];
#pragma unroll
    for (i32 i = 0; i < 2 * kRows; ++i) means[i] = first[i] * share;
#pragma unroll 1
    for (i32 step = 0; step < steps; step += kRows) {
      Word<kX> all_x[kRows][kWords];
      Word<kDy> all_dy[kRows][kWords];
      ahead.take(step, all_x, all_dy);
      // Sums of the square of x - mean, and of it times g; then those of the next turn: one barrier serves both.
      float all[4 * kRows] = {};
#pragma unroll
      for (i32 r = 0; r < kRows; ++r) {
        float* const sums = all + 4 * r;
        Row::template each<kWords>(ahead.elements(step + r), [&](i32 n, i32) {
          const Word<kX>& x = all_x[r][n];
#pragma unroll
          for (i32 i = 0; i < 8; ++i) {
            const float off = x.has(i) ? x.get(i) - means[2 * r] : 0.0f;
            sums[0] = fma(off, off, sums[0]);
            sums[1] = fma(off, all_dy[r][n].get(i) * weights[n].get(i), sums[1]);
          }
        });
        add(step + kRows + r, sums[2], sums[3]);
      }
      Team::reduce(Sum(), all, 1 + u32(step / kRows));
#pragma unroll
      for (i32 r = 0; r < kRows; ++r) {
        const i32 row = ahead.number(step + r);
        float *const sums = all + 4 * r, &mean = means[2 * r], &given = means[2 * r + 1];
        const float scale = rsqrt(sums[0] * share + a.eps), along = sums[1] * share * scale;
        Row::template each<kWords>(ahead.elements(step + r), [&](i32 n, i32 at) {
          const Word<kX>& x = all_x[r][n];
          const Word<kDy>& dy = all_dy[r][n];
          Word<kDsum> more;
          if constexpr (kHasSum) more.load(row_of(a.dsum, row), at, columns);
          Word<kDx>::of([&](i32 i) {
            const float z = (x.get(i) - mean) * scale;
            return fma(dy.get(i) * weights[n].get(i) - given - z * along, scale,
                       kHasSum ? more.get(i) : 0.0f);
          }).store(row_of(a.dx, row), at, columns);
#pragma unroll
          for (i32 i = 0; i < 8; ++i) {
            dweight[n][i] = fma(dy.get(i), (x.get(i) - mean) * scale, dweight[n][i]);
            dbias[n][i] += dy.get(i);
          }
        });
        Row::template finish<kDx>(row_of(a.dx, row), ahead.elements(step + r));
        mean = sums[2] * share, given = sums[3] * share;
      }
    }
    ahead.template store<Row>(a.dweight_parts, dweight);
    ahead.template store<Row>(a.dbias_parts, dbias);
  }
};

}  // namespace heddle::device::layer_norm_backward
