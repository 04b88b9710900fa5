// Softmax of rows in registers, of longer ones in the shared memory of a cluster, and of those that it does not hold in two passes, of
// which the first keeps the maximum and the sum online (Milakov and Gimelshein, 2018).
#pragma once

#include "heddle/kit/arch/numbers.cuh"
#include "heddle/kit/kernel.cuh"
#include "heddle/kit/rows/cluster_part.cuh"
#include "heddle/kit/rows/row_share.cuh"
#include "heddle/kit/rows/row_team.cuh"
#include "heddle/kit/rows/softsum.cuh"
#include "heddle/kit/rows/vec8.cuh"
#include "heddle/ops/softmax/softmax.h"

namespace heddle::device::softmax {

struct KernelConfig {
  static constexpr u32 kThreads = 256, kRowThreads = 256;
  static constexpr i32 kWords = 4, kCluster = 1, kRows = 1, kShare = kVec8;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kWords = Config::kWords, kRows = Config::kRows;
  static constexpr DType kIn = Config::types().x.dtype, kOut = Config::types().y.dtype;
  using Team = RowTeam<kThreads, Config::kRowThreads, Config::kCluster>;
  using Row = RowShare<Team, Config::kShare, kWords>;
  template <DType kType>
  using Word = typename Row::template Word<kType>;
  // Single elements are decoded one by one, which takes longer than memory does: their weights are kept, and the maximum of all comes
  // before them.
  static constexpr bool kKeeps = Config::kShare == kElements;

  static float weight_of(float score, float top) { return arch::exp2((score - top) * kLog2E); }
  static void run(const Softmax& a, const TensorMap*, u8*) {
    const typename Team::template Rows<kRows> rows(a.x);
    const i32 columns = rows.elements[0];  // as many as the others have, if any
    Word<kIn> values[kRows][kWords];
    const auto each = [&](auto&& use) {  // use(r, n, at) for the words of all rows
#pragma unroll
      for (i32 r = 0; r < kRows; ++r)
        Row::template each<kWords>(rows.elements[r], [&](i32 n, i32 at) { use(r, n, at); });
    };
    each([&](i32 r, i32 n, i32 at) { values[r][n].load(row_of(a.x, rows.row[r]), at, columns); });
    Team::meet();
    if constexpr (Row::kWaits) Row::settle(values[0]);  // which have one row at a time
    Softsum all[kRows];
    each([&](i32 r, i32 n, i32) {
#pragma unroll
      for (i32 i = 0; i < 8; ++i)
        if (values[r][n].has(i)) all[r].top = fmaxf(all[r].top, values[r][n].get(i));
    });
#pragma unroll
    for (Softsum& row : all)
      row.top = kKeeps ? Team::reduce(Max(), row.top) : Team::over_warp(Max(), row.top);
    float weights[kRows][kWords][8];
    each([&](i32 r, i32 n, i32) {
#pragma unroll
      for (i32 i = 0; i < 8; ++i) {
        weights[r][n][i] = weight_of(values[r][n].get(i), all[r].top);
        if (values[r][n].has(i)) all[r].sum += weights[r][n][i];
      }
    });
    float scales[kRows];
#pragma unroll
    for (i32 r = 0; r < kRows; ++r) {
      if constexpr (kKeeps || Team::kAll == 1)  // the maximum is the team's
        all[r].sum = Team::reduce(Sum(), all[r].sum, 1);
      else
        all[r].template join<Team>();
      scales[r] = 1 / all[r].sum;
    }
    each([&](i32 r, i32 n, i32 at) {
      Word<kOut>::of([&](i32 i) {
        return scales[r] * (kKeeps ? weights[r][n][i] : weight_of(values[r][n].get(i), all[r].top));
      }).store(row_of(a.y, rows.row[r]), at, columns);
    });
    if constexpr (Row::kWaits) Row::template finish<kOut>(row_of(a.y, rows.row[0]), columns);
  }
};

template <class Config>
struct LongKernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kWords = Config::kWords;
  static constexpr DType kIn = Config::types().x.dtype, kOut = Config::types().y.dtype;
  using Team = RowTeam<kThreads, kThreads>;
  using Row = RowShare<Team, Config::kShare, kWords>;
  template <DType kType>
  using Word = typename Row::template Word<kType>;

  static void run(const Softmax& a, const TensorMap*, u8*) {
    const i32 row = Team::row(), columns = a.x.size[1];
    const u8* const x = row_of(a.x, row);
    u8* const y = row_of(a.y, row);
    // use(values, begin, at): a word, `at` in what is left of the row from element `begin` on.
    const auto each_chunk = [&](auto&& use) {
#pragma unroll 1
      for (i32 begin = 0; begin < columns; begin += 8 * kWords * i32(kThreads)) {
        const u8* const from = x + i64(begin) * size_of(kIn);
        Word<kIn> values[kWords];
        Row::template each<kWords>(columns - begin,
                                   [&](i32 n, i32 at) { values[n].load_kept(from, at, columns - begin); });
        Row::template each<kWords>(columns - begin, [&](i32 n, i32 at) { use(values[n], begin, at); });
      }
    };
    Softsum all;
    each_chunk([&](const Word<kIn>& value, i32, i32) {
      const auto get = [&](i32 i) { return value.has(i) ? value.get(i) : identity(Max()); };
      float most = get(0);
#pragma unroll
      for (i32 i = 1; i < 8; ++i) most = fmaxf(most, get(i));
      all.add<8>(most, get);
    });
    all.join<Team>();
    const float scale = 1 / all.sum;
    each_chunk([&](const Word<kIn>& value, i32 begin, i32 at) {
      Word<kOut>::of([&](i32 i) {
        return arch::exp2((value.get(i) - all.top) * kLog2E) * scale;
      }).store(y + i64(begin) * size_of(kOut), at, columns - begin);
    });
  }
};

template <class Config>
struct ClusterKernel {
  static constexpr u32 kThreads = Config::kThreads, kCtas = 3 * 512 / kThreads;
  static constexpr DType kIn = Config::types().x.dtype, kOut = Config::types().y.dtype;
  using Part = ClusterPart<kThreads, Config::kCluster>;

  static void run(const Softmax& a, const TensorMap*, u8*) {
    const Part part(a.x.size[1] / 8);
    const auto kept = part.template kept<kIn>();
    const u8* const x = row_of(a.x, Part::row());
    u8* const y = row_of(a.y, Part::row());
    Softsum all;
    part.bring([&](i32 i, i32 at) { kept.copy(x, i, at); },
               [&](i32 i) {
                 const Vec8<kIn> value = kept.get(i);
                 float most = value.get(0);
#pragma unroll
                 for (i32 n = 1; n < 8; ++n) most = fmaxf(most, value.get(n));
                 all.add<8>(most, [&](i32 n) { return value.get(n); });
               });
    all.join<typename Part::Team>();
    all.join_cluster(part);
    const float scale = 1 / all.sum;
    part.each([&](i32 i, i32 at) {
      const Vec8<kIn> value = kept.get(i);
      Vec8<kOut>::of([&](i32 n) {
        return arch::exp2((value.get(n) - all.top) * kLog2E) * scale;
      }).store(y, at);
    });
    part.leave();
  }
};

}  // namespace heddle::device::softmax
