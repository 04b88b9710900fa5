// dx = y * (dy - sum of dy * y), with a row of both in registers, and of longer rows in the shared memory of a cluster. Where there
// are no clusters, and for what theirs does not hold, there are two passes.
#pragma once

#include "heddle/kit/kernel.cuh"
#include "heddle/kit/rows/cluster_part.cuh"
#include "heddle/kit/rows/row_share.cuh"
#include "heddle/kit/rows/row_team.cuh"
#include "heddle/kit/rows/vec8.cuh"
#include "heddle/ops/softmax/softmax_backward.h"

namespace heddle::device::softmax_backward {

struct KernelConfig {
  static constexpr u32 kThreads = 256, kRowThreads = 256;
  static constexpr i32 kWords = 4, kCluster = 1, kKept = 0, kShare = kVec8;
};

template <class Config>
struct Types {
  static constexpr DType kY = Config::types().y.dtype, kDy = Config::types().dy.dtype,
                         kDx = Config::types().dx.dtype;
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kWords = Config::kWords;

  static float add(float sum, const auto& y, const auto& dy) {
#pragma unroll
    for (i32 i = 0; i < 8; ++i) sum = fma(dy.get(i), y.get(i), sum);
    return sum;
  }
  template <class Made = Vec8<kDx>>
  static Made result(float sum, const auto& y, const auto& dy) {
    return Made::of([&](i32 i) { return y.get(i) * (dy.get(i) - sum); });
  }
};

template <class Config>
struct Kernel : Types<Config> {
  using T = Types<Config>;
  using T::kThreads, T::kWords, T::kY, T::kDy;
  using Team = RowTeam<kThreads, Config::kRowThreads>;
  using Row = RowShare<Team, Config::kShare, kWords>;
  template <DType kType>
  using Word = typename Row::template Word<kType>;

  static void run(const SoftmaxBackward& a, const TensorMap*, u8*) {
    const i32 row = Team::row(), columns = Team::elements(a.y);
    Word<kY> y[kWords];
    Word<kDy> dy[kWords];
    Row::template each<kWords>(columns, [&](i32 n, i32 at) {
      y[n].load(row_of(a.y, row), at, columns), dy[n].load(row_of(a.dy, row), at, columns);
    });
    Row::settle(y), Row::settle(dy);
    float sum = 0;
    Row::template each<kWords>(columns, [&](i32 n, i32) { sum = T::add(sum, y[n], dy[n]); });
    sum = Team::reduce(Sum(), sum);
    Row::template each<kWords>(columns, [&](i32 n, i32 at) {
      T::template result<Word<T::kDx>>(sum, y[n], dy[n]).store(row_of(a.dx, row), at, columns);
    });
    Row::template finish<T::kDx>(row_of(a.dx, row), columns);
  }
};

template <class Config>
struct LongKernel : Types<Config> {
  using T = Types<Config>;
  using T::kThreads, T::kWords, T::kY, T::kDy;
  using Team = RowTeam<kThreads, kThreads>;
  using Row = RowShare<Team, Config::kShare, kWords>;
  template <DType kType>
  using Word = typename Row::template Word<kType>;

  static void run(const SoftmaxBackward& a, const TensorMap*, u8*) {
    const i32 row = Team::row(), columns = a.y.size[1];
    // use(y, dy, begin, at): words, `at` in what is left of the row from element `begin` on.
    const auto each_chunk = [&](auto&& use) {
#pragma unroll 1
      for (i32 begin = 0; begin < columns; begin += 8 * kWords * i32(kThreads)) {
        const i32 left = columns - begin;
        const u8* const from_y = row_of(a.y, row) + i64(begin) * size_of(kY);
        const u8* const from_dy = row_of(a.dy, row) + i64(begin) * size_of(kDy);
        Word<kY> y[kWords];
        Word<kDy> dy[kWords];
        Row::template each<kWords>(left, [&](i32 n, i32 at) {
          y[n].load_kept(from_y, at, left), dy[n].load_kept(from_dy, at, left);
        });
        Row::template each<kWords>(left, [&](i32 n, i32 at) { use(y[n], dy[n], begin, at); });
      }
    };
    float sum = 0;
    each_chunk([&](const Word<kY>& y, const Word<kDy>& dy, i32, i32) { sum = T::add(sum, y, dy); });
    sum = Team::reduce(Sum(), sum);
    each_chunk([&](const Word<kY>& y, const Word<kDy>& dy, i32 begin, i32 at) {
      T::template result<Word<T::kDx>>(sum, y, dy)
          .store(row_of(a.dx, row) + i64(begin) * size_of(T::kDx), at, columns - begin);
    });
  }
};

template <class Config>
struct ClusterKernel : Types<Config> {
  using T = Types<Config>;
  using T::kThreads, T::kY, T::kDy;
  static constexpr u32 kCtas = Config::kKept > 0 ? 1 : 3 * 512 / kThreads;
  using Part = ClusterPart<kThreads, Config::kCluster, Config::kKept>;

  static void run(const SoftmaxBackward& a, const TensorMap*, u8*) {
    const i32 row = Part::row();
    const Part part(a.y.size[1] / 8);
    const auto y = part.template kept<kY>();
    const auto dy = part.template kept<kDy, Vec8<kY>::kWords>();
    struct Both {
      Vec8<kY> y;
      Vec8<kDy> dy;
    };
    const auto load = [&](i32 at) {
      Both both;
      both.y.load_kept(row_of(a.y, row), at), both.dy.load_kept(row_of(a.dy, row), at);
      return both;
    };
    float sum = 0;
    part.bring([&](i32 i, i32 at) { y.copy(row_of(a.y, row), i, at), dy.copy(row_of(a.dy, row), i, at); },
               [&](i32 i) { sum = T::add(sum, y.get(i), dy.get(i)); });
    part.each_other(load, [&](const Both& both, i32) { sum = T::add(sum, both.y, both.dy); });
    const float mine[1] = {Part::Team::reduce(Sum(), sum)};
    float others[1] = {0};
    part.exchange(mine, others);
    sum = Part::Team::over_warp(Sum(), others[0]);
    // First those that the L2 cache has.
    part.each_other(load, [&](const Both& both, i32 at) {
      T::result(sum, both.y, both.dy).store(row_of(a.dx, row), at);
    });
    part.each([&](i32 i, i32 at) { T::result(sum, y.get(i), dy.get(i)).store(row_of(a.dx, row), at); });
    part.leave();
  }
};

}  // namespace heddle::device::softmax_backward
