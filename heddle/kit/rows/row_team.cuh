// The threads that have a row together, and how they add up and exchange values.
#pragma once

#include "heddle/kit/arch/cluster.cuh"
#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/value/value.cuh"

namespace heddle::device {

// The CTA that runs, for code that kernels have in common.
struct ThisCta {
  static i32 thread() { return i32(threadIdx.x); }
  static u32 number() { return blockIdx.x; }
  static void sync() { __syncthreads(); }
  // The value that the lane has whose number differs in `bits`.
  static float of_lane_across(float value, u32 bits) { return __shfl_xor_sync(~0u, value, bits); }
};

// The threads that have a row together: a part of a warp, a warp, all of a CTA, or those of the kCluster CTAs of a cluster. A CTA has
// kThreads / kRowThreads rows, or a part of one.
template <u32 kThreads, u32 kRowThreads, i32 kCluster = 1>
struct RowTeam {
  static_assert(kRowThreads == 8 || kRowThreads == 16 || kRowThreads == 32 || kRowThreads == kThreads);
  static_assert(kCluster == 1 || kRowThreads == kThreads);
  static constexpr u32 kThreadsOfRow = kRowThreads, kTeams = kThreads / kRowThreads;
  static constexpr i32 kLanes = kRowThreads < 32 ? kRowThreads : 32;
  static constexpr u32 kWarps = (kRowThreads + 31) / 32, kAll = kWarps * kCluster;
  static constexpr i32 kMostCount = 4;  // values that a cluster reduces at once
  // Dynamic shared memory that a cluster's team needs, from the beginning on (kit/rows/row_kernel.cpp).
  static constexpr u32 kRoomBytes = kCluster == 1 ? 0 : 128 + 2 * kMostCount * kAll * 4;

  static i32 thread() { return i32(threadIdx.x % kRowThreads); }
  static i32 number() { return i32(threadIdx.x / kRowThreads); }  // among the teams of the CTA
  static i32 row() { return i32(blockIdx.x / kCluster * (kThreads / kRowThreads)) + number(); }
  // The number of elements, or of vectors of eight, in the team's row: none past the last row, where other
  // teams of the warp may have one.
  static i32 elements(const Tensor& matrix) { return row() < matrix.size[0] ? matrix.size[1] : 0; }
  static i32 eights(const Tensor& matrix) { return elements(matrix) / 8; }
  // The kRows rows that a team has, and their elements.
  template <i32 kRows>
  struct Rows {
    i32 row[kRows], elements[kRows];

    explicit Rows(const Tensor& matrix) {
#pragma unroll
      for (i32 r = 0; r < kRows; ++r) {
        row[r] = i32(blockIdx.x / kCluster * (kTeams * kRows) + u32(r) * kTeams) + number();
        elements[r] = row[r] < matrix.size[0] ? matrix.size[1] : 0;
      }
    }
  };
  // Makes a team of a cluster ready for reduce(): all of its CTAs run, and their barriers count.
  static void meet() {
    if constexpr (kCluster > 1) {
      if (threadIdx.x == 0) {
        for (u32 turn = 0; turn < 2; ++turn) arch::init_counted(arrived(turn));
        arch::fence_barriers();
      }
      arch::sync_cluster();
    }
  }

  template <class Op>
  static float over_warp(Op op, float mine) {
#pragma unroll
    for (i32 bits = kLanes / 2; bits > 0; bits /= 2)
      mine = combine(op, mine, __shfl_xor_sync(~0u, mine, bits));
    return mine;
  }
  // Reduces kCount values of all threads at once. Calls that follow each other take turns, in a cluster from 0 on.
  template <i32 kCount, class Op>
  static void reduce(Op op, float (&mine)[kCount], u32 turn = 0) {
#pragma unroll
    for (float& value : mine) value = over_warp(op, value);
    if constexpr (kWarps > 1) {
      const float* const values = share(mine, turn);
      const u32 lane = threadIdx.x % 32;
#pragma unroll
      for (i32 i = 0; i < kCount; ++i) {
        mine[i] = lane < kAll ? values[i * i32(kAll) + i32(lane)] : identity(op);
#pragma unroll
        for (u32 at = 32; at < kAll; at += 32)
          if (at + lane < kAll) mine[i] = combine(op, mine[i], values[i * i32(kAll) + i32(at + lane)]);
        mine[i] = over_warp(op, mine[i]);
      }
    }
  }
  template <class Op>
  static float reduce(Op op, float mine, u32 turn = 0) {
    float one[1] = {mine};
    reduce(op, one, turn);
    return one[0];
  }
  // The eights of a row that the threads of this CTA have.
  struct Eights {
    i32 first, end;
  };
  static Eights part_of(i32 eights) {
    if constexpr (kCluster == 1) {
      return {0, eights};
    } else {
      const i32 part = (eights + kCluster - 1) / kCluster, first = i32(arch::cta_in_cluster()) * part;
      return {first, first + part < eights ? first + part : eights};
    }
  }
  // f(n, at) for the eights of a row that the thread has: word n of it is number `at` of the row.
  template <i32 kWords, class F>
  static void each(i32 eights, F&& f) {
    i32 first = 0, end = eights;
    if constexpr (kCluster > 1) {
      const i32 part = (eights + kCluster - 1) / kCluster;
      first = i32(arch::cta_in_cluster()) * part;
      end = first + part < eights ? first + part : eights;
    }
#pragma unroll
    for (i32 n = 0; n < kWords; ++n)
      if (const i32 at = first + thread() + n * i32(kRowThreads); at < end) f(n, at);
  }
  // Waits for those of the team that are in this CTA.
  static void sync() {
    if constexpr (kWarps > 1)
      __syncthreads();
    else
      __syncwarp();
  }

 private:
  // Counts the bytes that a turn's stores bring. A warp stores its next values after it has read those of all, so that two turns are
  // enough.
  static arch::OnChip arrived(u32 turn) {
    return arch::on_chip(reinterpret_cast<u64*>(arch::dynamic_shared()) + turn % 2);
  }
  // Returns the values of all warps, [kCount][kAll], which each warp has of its own lanes. In a cluster each CTA gets them.
  template <i32 kCount>
  static const float* share(const float (&mine)[kCount], u32 turn) {
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if constexpr (kCluster == 1) {
      __shared__ float room[2][kCount][kWarps];
#pragma unroll
      for (i32 i = 0; i < kCount; ++i)
        if (lane == 0) room[turn % 2][i][warp] = mine[i];
      __syncthreads();
      return room[turn % 2][0];
    } else {
      static_assert(kCount <= kMostCount);
      float* const room =
          reinterpret_cast<float*>(arch::dynamic_shared() + 128) + turn % 2 * u32(kMostCount) * kAll;
      if (lane < u32(kCluster))
#pragma unroll
        for (i32 i = 0; i < kCount; ++i) {
          const float* const place = room + u32(i) * kAll + arch::cta_in_cluster() * kWarps + warp;
          arch::store_counted(arch::at_cta(arch::on_chip(place), lane), __float_as_uint(mine[i]),
                              arch::at_cta(arrived(turn), lane));
        }
      arch::wait_counted(arrived(turn), kCount * kAll * 4, turn / 2 % 2);
      return room;
    }
  }
};

}  // namespace heddle::device
