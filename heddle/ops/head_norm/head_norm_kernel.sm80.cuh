// Heads of rows in registers. Columns after the heads are pieces as wide as heads, which pass through.
#pragma once

#include "heddle/kit/kernel.cuh"
#include "heddle/kit/rows/row_share.cuh"
#include "heddle/kit/rows/row_team.cuh"
#include "heddle/kit/rows/vec8.cuh"
#include "heddle/ops/head_norm/head_norm.h"

namespace heddle::device::head_norm {

struct KernelConfig {
  static constexpr u32 kThreads = 128, kRowThreads = 16;
  static constexpr i32 kWords = 1, kShare = kVec8, kKind = 0;  // kKind: centred
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kWords = Config::kWords;
  static constexpr DType kIn = Config::types().x.dtype, kWeight = Config::types().weight.dtype,
                         kOut = Config::types().y.dtype;
  using Team = RowTeam<kThreads, Config::kRowThreads>;
  using Row = RowShare<Team, Config::kShare, kWords>;
  template <DType kType>
  using Word = typename Row::template Word<kType>;

  static void run(const HeadNorm& a, const TensorMap*, u8*) {
    const Pieces pieces(a.x, a.head_dim);
    const i32 row = pieces.row(Team::row()), first = pieces.first(Team::row());
    const Tensor x = pieces.of(a.x, first), y = pieces.of(a.y, first);
    const i32 columns = row < x.size[0] ? x.size[1] : 0;
    const bool is_head = first < a.weight.size[0];
    const u8* const weight = a.weight.data + i64(first) * size_of(kWeight);
    Word<kIn> values[kWords];
    Word<kWeight> weights[kWords];
    Row::template each<kWords>(columns, [&](i32 n, i32 at) { values[n].load(row_of(x, row), at, columns); });
    if (is_head)
      Row::template each<kWords>(columns, [&](i32 n, i32 at) { weights[n].load_kept(weight, at, columns); });
    Row::settle(values);
    float mean = 0, squares = 0;
    if constexpr (Config::kKind != 0) {
      Row::template each<kWords>(columns, [&](i32 n, i32) {
#pragma unroll
        for (i32 i = 0; i < 8; ++i) mean += values[n].get(i);
      });
      mean = Team::reduce(Sum(), mean) / float(columns);
    }
    Row::template each<kWords>(columns, [&](i32 n, i32) {
#pragma unroll
      for (i32 i = 0; i < 8; ++i) {
        const float off = values[n].has(i) ? values[n].get(i) - mean : 0.0f;
        squares = fma(off, off, squares);
      }
    });
    const float scale = rsqrt(Team::reduce(Sum(), squares, 1) / float(columns) + a.eps);
    Row::template each<kWords>(columns, [&](i32 n, i32 at) {
      Word<kOut>::of([&](i32 i) {
        const float value = values[n].get(i);
        return is_head ? (value - mean) * scale * weights[n].get(i) : value;
      }).store(row_of(y, row), at, columns);
    });
    Row::template finish<kOut>(row_of(y, row), columns);
  }
};

}  // namespace heddle::device::head_norm
