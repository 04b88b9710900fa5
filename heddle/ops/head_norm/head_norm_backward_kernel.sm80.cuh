// dx of heads in registers. A CTA has one head of the rows of one part, and keeps its sum of dweight in registers; the next rows are
// on their way while these are worked on. Columns after the heads are pieces as wide as heads, which dy passes through.
#pragma once

#include "heddle/kit/kernel.cuh"
#include "heddle/kit/rows/row_share.cuh"
#include "heddle/kit/rows/row_team.cuh"
#include "heddle/kit/rows/rows_ahead.cuh"
#include "heddle/kit/rows/vec8.cuh"
#include "heddle/ops/head_norm/head_norm_backward.h"

namespace heddle::device::head_norm_backward {

struct KernelConfig {
  static constexpr u32 kThreads = 64, kRowThreads = 16;
  static constexpr i32 kWords = 1, kCluster = 1, kPlaces = 2, kRows = 1, kShare = kVec8,
                       kKind = 0;  // kKind: centred
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kWords = Config::kWords;
  static constexpr DType kX = Config::types().x.dtype, kWeight = Config::types().weight.dtype,
                         kDy = Config::types().dy.dtype, kDx = Config::types().dx.dtype;
  static constexpr bool kCentred = Config::kKind != 0;
  using Team = RowTeam<kThreads, Config::kRowThreads>;
  using Row = RowShare<Team, Config::kShare, kWords>;
  template <DType kType>
  using Word = typename Row::template Word<kType>;
  using Ahead = PartAhead<Team, Config, 1, kX, kDy>;

  static void run(const HeadNormBackward& a, const TensorMap*, u8*) {
    const Pieces pieces(a.x, a.head_dim);
    const i32 first = pieces.first(i32(blockIdx.x));
    const Tensor x = pieces.of(a.x, first), dy = pieces.of(a.dy, first), dx = pieces.of(a.dx, first);
    Ahead ahead{x, dy, pieces.row(i32(blockIdx.x)), a.parts()};
    const i32 columns = x.size[1], steps = ahead.steps;
    const bool is_head = first < a.weight.size[0];
    const float share = 1 / float(columns);
    float parts[kWords][8] = {};
    Word<kWeight> weights[kWords];
    ahead.fetch_first();
    if (is_head)
      Row::template each<kWords>(columns, [&](i32 n, i32 at) {
        weights[n].load_kept(a.weight.data + i64(first) * size_of(kWeight), at, columns);
      });
    Row::settle(weights);
#pragma unroll 1
    for (i32 step = 0; step < steps; ++step) {
      Word<kX> all_x[1][kWords];
      Word<kDy> all_dy[1][kWords];
      ahead.take(step, all_x, all_dy);
      const auto &of_x = all_x[0], &of_dy = all_dy[0];
      const i32 row = ahead.number(step), elements = ahead.elements(step);
      float means[2] = {};  // means of x, and of g = dy * weight
      if constexpr (kCentred) {
        Row::template each<kWords>(elements, [&](i32 n, i32) {
#pragma unroll
          for (i32 i = 0; i < 8; ++i) {
            means[0] += of_x[n].get(i);
            means[1] = fma(of_dy[n].get(i), weights[n].get(i), means[1]);
          }
        });
        Team::reduce(Sum(), means, 0);
        means[0] *= share, means[1] *= share;
      }
      float sums[2] = {};  // sums of the square of x - its mean, and of it times g
      Row::template each<kWords>(elements, [&](i32 n, i32) {
#pragma unroll
        for (i32 i = 0; i < 8; ++i) {
          const float off = of_x[n].has(i) ? of_x[n].get(i) - means[0] : 0.0f;
          sums[0] = fma(off, off, sums[0]);
          sums[1] = fma(off, of_dy[n].get(i) * weights[n].get(i), sums[1]);
        }
      });
      Team::reduce(Sum(), sums, kCentred ? 1 : u32(step));
      const float scale = rsqrt(sums[0] * share + a.eps), along = sums[1] * share * scale;
      Row::template each<kWords>(elements, [&](i32 n, i32 at) {
        Word<kDx>::of([&](i32 i) {
          const float given = of_dy[n].get(i), z = (of_x[n].get(i) - means[0]) * scale;
          return is_head ? (given * weights[n].get(i) - means[1] - z * along) * scale : given;
        }).store(row_of(dx, row), at, columns);
#pragma unroll
        for (i32 i = 0; i < 8; ++i)
          parts[n][i] = fma(of_dy[n].get(i), (of_x[n].get(i) - means[0]) * scale, parts[n][i]);
      });
      Row::template finish<kDx>(row_of(dx, row), elements);
    }
    if (is_head) ahead.template store<Row>(pieces.of(a.dweight_parts, first), parts);
  }
};

}  // namespace heddle::device::head_norm_backward
