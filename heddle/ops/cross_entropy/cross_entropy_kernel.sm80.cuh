// The loss of rows, in one pass: the maximum and the sum of weights are kept online (Milakov and Gimelshein, 2018).
#pragma once

#include "heddle/kit/kernel.cuh"
#include "heddle/kit/rows/row_share.cuh"
#include "heddle/kit/rows/row_team.cuh"
#include "heddle/kit/rows/softsum.cuh"
#include "heddle/kit/rows/vec8.cuh"
#include "heddle/ops/cross_entropy/cross_entropy.h"

namespace heddle::device::cross_entropy {

#include "heddle/ops/cross_entropy/target.cuh"

struct KernelConfig {
  static constexpr u32 kThreads = 512, kRowThreads = 1024;  // as many as kThreads at most
  static constexpr i32 kWords = 4, kShare = kVec8;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kWords = Config::kWords;
  static constexpr DType kIn = Config::types().logits.dtype;
  static constexpr u32 kRowThreads = Config::kRowThreads < kThreads ? Config::kRowThreads : kThreads;
  using Team = RowTeam<kThreads, kRowThreads>;

  static void run(const CrossEntropy& a, const TensorMap*, u8*) {
    const i32 row = Team::row(), columns = a.logits.size[1];
    const u8* const x = row_of(a.logits, row);
    Softsum all;
    float sum = 0;
    if constexpr (Config::kShare == kElements)
      add_elements(a, x, all, sum);
    else
      add_eights(a, x, all, sum);
    all.join<Team>();
    if (a.label_smoothing != 0.0f) sum = Team::reduce(Sum(), sum);
    if (Team::thread() > 0 || row >= a.logits.size[0]) return;
    const i32* words = reinterpret_cast<const i32*>(a.target.data);
    const Target target =
        target_of(Words{words}, Config::types().target.dtype == DType::kI64, row, columns, a.ignore_index);
    // Logits that are minus infinity throughout have no softmax.
    const float lse = all.sum == 0.0f ? kNaN : all.top + logf(all.sum);
    const float own = target.column < 0 ? 0.0f : capped(load_element(kIn, x, target.column), a.softcap);
    reinterpret_cast<float*>(a.loss.data)[row] = loss_of(a, columns, target, lse, own, sum);
    reinterpret_cast<float*>(a.lse.data)[row] = lse;
  }

 private:
  static void add_eights(const CrossEntropy& a, const u8* x, Softsum& all, float& sum) {
    const i32 eights = Team::eights(a.logits);
#pragma unroll 1
    for (i32 begin = 0; begin < eights; begin += kWords * i32(kRowThreads)) {
      Vec8<kIn> values[kWords];
      Team::template each<kWords>(eights - begin, [&](i32 n, i32 at) { values[n].load(x, begin + at); });
      Team::template each<kWords>(eights - begin, [&](i32 n, i32) { add(a, values[n], 8, all, sum); });
    }
  }
  static void add_elements(const CrossEntropy& a, const u8* x, Softsum& all, float& sum) {
    const i32 columns = Team::elements(a.logits);
#pragma unroll 1
    for (i32 begin = Team::thread(); begin < columns; begin += 8 * i32(kRowThreads)) {
      StridedVec<kIn, i32(kRowThreads)> values;
      values.load(x, begin, columns);
      add(a, values, values.count, all, sum);
    }
  }
  // The first `count` logits of eight.
  template <class Word>
  static void add(const CrossEntropy& a, const Word& values, i32 count, Softsum& all, float& sum) {
    float z[8];
#pragma unroll
    for (i32 i = 0; i < 8; ++i) z[i] = values.get(i);
    if (a.softcap > 0)
#pragma unroll
      for (float& value : z) value = capped(value, a.softcap);
    float most = -1e38f, total = 0;
#pragma unroll
    for (i32 i = 0; i < 8; ++i) {
      if (i < count)
        most = fmaxf(most, z[i]), total += z[i];
      else
        z[i] = identity(Max());  // weighs nothing
    }
    sum += total;
    all.add<8>(most, [&](i32 i) { return z[i]; });
  }

  struct Words {
    const i32* at;
    i32 get_int(i32 i) const { return at[i]; }
  };
};

}  // namespace heddle::device::cross_entropy
