// dlogits of short rows in registers, or of stretches of rows: each element from its own logit.
#pragma once

#include "heddle/kit/arch/numbers.cuh"
#include "heddle/kit/kernel.cuh"
#include "heddle/kit/rows/row_share.cuh"
#include "heddle/kit/rows/row_team.cuh"
#include "heddle/kit/rows/softsum.cuh"
#include "heddle/kit/rows/stretch.cuh"
#include "heddle/kit/rows/vec8.cuh"
#include "heddle/ops/cross_entropy/cross_entropy_backward.h"

namespace heddle::device::cross_entropy_backward {

#include "heddle/ops/cross_entropy/target.cuh"

struct KernelConfig {
  static constexpr u32 kThreads = 256, kRowThreads = 0;  // 0: stretches
  static constexpr i32 kWords = 2, kShare = kVec8;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kWords = Config::kWords;
  static constexpr DType kIn = Config::types().logits.dtype, kOut = Config::types().dlogits.dtype;

  static void run(const CrossEntropyBackward& a, const TensorMap*, u8*) {
    if (a.softcap > 0)
      run_row<true>(a);
    else
      run_row<false>(a);
  }

 private:
  static Slopes slopes_of_row(const CrossEntropyBackward& a, i32 row) {
    const i32 columns = a.logits.size[1];
    const Target target =
        target_of(Words{reinterpret_cast<const i32*>(a.target.data)},
                  Config::types().target.dtype == DType::kI64, row, columns, a.ignore_index);
    return slopes_of(a, columns, target,
                     [&](const Tensor& tensor) { return reinterpret_cast<const float*>(tensor.data)[row]; });
  }

  // The logits are on their way while the row's facts are loaded.
  template <bool kCapped>
  static void run_row(const CrossEntropyBackward& a) {
    if constexpr (Config::kShare == kElements) {
      run_elements<kCapped>(a);
    } else if constexpr (Config::kRowThreads > 0) {
      using Team = RowTeam<kThreads, Config::kRowThreads>;
      const i32 row = Team::row(), eights = Team::eights(a.logits);
      if (eights == 0) return;
      Vec8<kIn> values[kWords];
      Team::template each<kWords>(eights, [&](i32 n, i32 at) { values[n].load(row_of(a.logits, row), at); });
      const Slopes r = slopes_of_row(a, row);
      Team::template each<kWords>(eights, [&](i32 n, i32 at) { store<kCapped>(a, row, r, at, values[n]); });
    } else {
      const Stretch stretch = Stretch::of_row(kWords * kThreads, a.logits);
      const i32 row = stretch.row;
      Slopes r;
      stretch.walk<kThreads, kWords>(
          [&](i64 at) {
            Vec8<kIn> value;
            value.load(row_of(a.logits, row), at);
            return value;
          },
          [&] { r = slopes_of_row(a, row); },
          [&](i64 at, const Vec8<kIn>& value) { store<kCapped>(a, row, r, at, value); });
    }
  }
  template <bool kCapped>
  static void store(const CrossEntropyBackward& a, i32 row, const Slopes& r, i64 at, const Vec8<kIn>& value) {
    const i32 target = r.column - i32(8 * at);
    Vec8<kOut>::of([&](i32 i) {
      return gradient<kCapped>(a, r, value.get(i), i == target);
    }).store(row_of(a.dlogits, row), at);
  }
  template <bool kCapped>
  static float gradient(const CrossEntropyBackward& a, const Slopes& r, float logit, bool is_target) {
    const float z = kCapped ? capped(logit, a.softcap) : logit;
    const float dz = fma(arch::exp2((z - r.lse) * kLog2E), r.of_p, -r.less) - (is_target ? r.own : 0.0f);
    return kCapped ? dz * slope_of_cap(z, a.softcap) : dz;
  }

  // Rows that are no words of 16 bytes: neighbouring threads have neighbouring elements.
  template <bool kCapped>
  static void run_elements(const CrossEntropyBackward& a) {
    constexpr i32 kCount = 8 * kWords, kApart = i32(Config::kRowThreads > 0 ? Config::kRowThreads : kThreads);
    const i32 columns = a.logits.size[1], pieces = (columns + kCount * kApart - 1) / (kCount * kApart);
    const i32 first = i32(blockIdx.x * (kThreads / kApart) + threadIdx.x / kApart), row = first / pieces;
    if (row >= a.logits.size[0]) return;
    const i32 begin = first % pieces * (kCount * kApart) + i32(threadIdx.x % kApart);
    StridedVec<kIn, kApart, kCount> values;
    values.load(row_of(a.logits, row), begin, columns);
    const Slopes r = slopes_of_row(a, row);
    const i32 target = r.column - begin;
    StridedVec<kOut, kApart, kCount>::of([&](i32 i) {
      return gradient<kCapped>(a, r, values.get(i), i * kApart == target);
    }).store(row_of(a.dlogits, row), begin, columns);
  }

  struct Words {
    const i32* at;
    i32 get_int(i32 i) const { return at[i]; }
  };
};

}  // namespace heddle::device::cross_entropy_backward
