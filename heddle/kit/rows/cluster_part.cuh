// Long rows in the shared memory of a cluster.
#pragma once

#include "heddle/kit/arch/cluster.cuh"
#include "heddle/kit/arch/memory.cuh"
#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/rows/row_team.cuh"
#include "heddle/kit/rows/vec8.cuh"

namespace heddle::device {

// The part of a row that one of kCluster CTAs has, in eights. It keeps them in its shared memory, each of the thread that copied it,
// so that copies need no barrier. kKept: it keeps so many at most, and the rest is read again; 0: it keeps all.
template <u32 kThreads, i32 kCluster, i32 kKept = 0>
struct ClusterPart {
  using Team = RowTeam<kThreads, kThreads>;
  static constexpr i32 kSteps = 4;  // in which a part comes

  explicit ClusterPart(i32 eights) {
    const i32 part = (eights + kCluster - 1) / kCluster;
    begin_ = kCluster > 1 ? i32(arch::cta_in_cluster()) * part : 0;
    const i32 left = eights - begin_;
    count_ = left < 0 ? 0 : left < part ? left : part;
    room_ = kKept == 0 || part < kKept ? part : kKept;
    kept_ = count_ < room_ ? count_ : room_;
  }
  static i32 row() { return i32(blockIdx.x / kCluster); }

  // Eights of one matrix, from word kFirst of each on.
  template <DType kType, i32 kFirst = 0>
  struct Kept {
    uint4* words;
    i32 room;

    Vec8<kType> get(i32 i) const {
      Vec8<kType> value;
#pragma unroll
      for (i32 n = 0; n < Vec8<kType>::kWords; ++n) value.words[n] = words[i64(kFirst + n) * room + i];
      return value;
    }
    void copy(const u8* row, i32 i, i32 at) const {
      Vec8<kType>::copy(row, at, [&](i32 n) { return words + i64(kFirst + n) * room + i; });
    }
  };
  template <DType kType, i32 kFirst = 0>
  Kept<kType, kFirst> kept() const {
    return {reinterpret_cast<uint4*>(arch::dynamic_shared() + kExchangeBytes), room_};
  }

  // copy(i, at) for each of the thread's eights that are kept, number i of the part and `at` of the row; then use(i) as they come.
  template <class Copy, class Use>
  void bring(Copy&& copy, Use&& use) const {
#pragma unroll 1
    for (i32 step = 0; step < kSteps; ++step) {
      each(step, [&](i32 i) { copy(i, begin_ + i); });
      arch::commit_copies();
    }
#pragma unroll
    for (i32 step = 0; step < kSteps; ++step) {
      arch::wait_copies(kSteps - 1 - step);
      each(step, use);
    }
  }
  // use(load(at), at) for each of the thread's eights that are not kept.
  template <class Load, class Use>
  void each_other(Load&& load, Use&& use) const {
    if constexpr (kKept > 0) {
      constexpr i32 kBatch = 4;  // under way at once
#pragma unroll 1
      for (i32 i = kept_ + i32(threadIdx.x); i < count_; i += kBatch * i32(kThreads)) {
        decltype(load(i)) values[kBatch];
#pragma unroll
        for (i32 n = 0; n < kBatch; ++n)
          if (const i32 own = i + n * i32(kThreads); own < count_) values[n] = load(begin_ + own);
#pragma unroll
        for (i32 n = 0; n < kBatch; ++n)
          if (const i32 own = i + n * i32(kThreads); own < count_) use(values[n], begin_ + own);
      }
    }
  }
  // use(i, at) for each of those that are.
  template <class Use>
  void each(Use&& use) const {
#pragma unroll 2
    for (i32 i = i32(threadIdx.x); i < kept_; i += i32(kThreads)) use(i, begin_ + i);
  }

  // others[n] becomes mine[n] of CTA number `lane`; lanes past the last keep theirs. Once; no CTA ends before leave(), which waits until
  // all have read.
  template <i32 kCount>
  void exchange(const float (&mine)[kCount], float (&others)[kCount]) const {
    static_assert(kCount * 4 <= kExchangeBytes);
    float* const place = reinterpret_cast<float*>(arch::dynamic_shared());
    if constexpr (kCluster > 1) {
      if (threadIdx.x == 0)
        for (i32 n = 0; n < kCount; ++n) place[n] = mine[n];
      arch::sync_cluster();
    }
    if (const u32 lane = threadIdx.x % 32; lane < kCluster)
      for (i32 n = 0; n < kCount; ++n)
        others[n] =
            kCluster > 1 ? arch::load_float_at(arch::at_cta(arch::on_chip(place + n), lane)) : mine[n];
    if constexpr (kCluster > 1) arch::arrive_at_cluster();
  }
  void leave() const {
    if constexpr (kCluster > 1) arch::wait_for_cluster();
  }

 private:
  static constexpr i32 kExchangeBytes = 128;

  template <class Use>
  void each(i32 step, Use&& use) const {
    const i32 rounds = (kept_ + i32(kThreads) - 1) / i32(kThreads);
    const i32 first = rounds * step / kSteps, last = rounds * (step + 1) / kSteps;
#pragma unroll 2
    for (i32 round = first; round < last; ++round)
      if (const i32 i = i32(threadIdx.x) + round * i32(kThreads); i < kept_) use(i);
  }

  i32 room_, begin_, count_, kept_;  // eights
};

}  // namespace heddle::device
