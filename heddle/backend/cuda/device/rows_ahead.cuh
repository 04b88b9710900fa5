// Rows on their way to shared memory while others are worked on (row_kernel.cuh). Each thread copies the elements that it needs itself,
// so that copies need no barrier.
#pragma once

#include "heddle/backend/cuda/device/row_share.cuh"
#include "heddle/ir/parts.h"

namespace heddle::device {

// Rows of one matrix: row r has place r % kPlaces, from byte kFirst of each on. A place is taken again by a row that is kPlaces
// later, which must not be copied before a barrier follows get().
template <class Team, u32 kThreads, i32 kWords, i32 kPlaces, DType kType, u32 kFirst, u32 kPlaceBytes>
struct RowsAhead {
  static constexpr u32 kRowBytes = kThreads * kWords * 8 * size_of(kType);

  static void copy(const u8* from, i32 row, i32 eights) {
    Team::template each<kWords>(eights, [&](i32 n, i32 at) {
#pragma unroll
      for (i32 i = 0; i < Eight<kType>::kWords; ++i)
        arch::copy_bytes(word(row, n, i), from + (i64(at) * Eight<kType>::kWords + i) * 16, 16);
    });
  }
  static Eight<kType> get(i32 row, i32 n) {
    Eight<kType> value;
#pragma unroll
    for (i32 i = 0; i < Eight<kType>::kWords; ++i) value.words[i] = *word(row, n, i);
    return value;
  }

 private:
  static uint4* word(i32 row, i32 n, i32 i) {
    u8* const place = arch::dynamic_shared() + u32(row % kPlaces) * kPlaceBytes + kFirst;
    return reinterpret_cast<uint4*>(place) + (n * Eight<kType>::kWords + i) * i32(kThreads) + threadIdx.x;
  }
};

// Adds to the values of the first team of a CTA those of all others, in the order of warps.
template <u32 kThreads, u32 kTeam, i32 kWords>
inline void add_teams(float (&mine)[kWords][8]) {
  if constexpr (kTeam < kThreads) {
    __shared__ float room[kThreads / 32][kWords * 8][32];
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (i32 i = 0; i < kWords * 8; ++i) {
      float& value = mine[i / 8][i % 8];
#pragma unroll
      for (u32 bits = kTeam; bits < 32; bits *= 2) value += __shfl_xor_sync(~0u, value, bits);
      room[warp][i][lane] = value;
    }
    __syncthreads();
#pragma unroll
    for (i32 i = 0; i < kWords * 8; ++i)
      for (u32 other = 1; other < kThreads / 32; ++other) mine[i / 8][i % 8] += room[other][i][lane];
    __syncthreads();
  }
}

// The rows of x and dy that are one part's (heddle/ir/parts.h). The teams of a CTA have a row each at every step. A thread copies
// those of kPlaces - 1 steps ahead; loose rows are loaded when they are needed.
template <class Team, bool kLoose, u32 kThreads, i32 kWords, i32 kPlaces, DType kX, DType kDy>
struct PartAhead {
  using Row = RowShare<Team, kLoose>;
  template <DType kType>
  using Word = typename Row::template Word<kType>;
  static constexpr i32 kTeams = kThreads / Team::kThreadsOfRow;
  static constexpr u32 kPlaceBytes = kThreads * kWords * 8 * (size_of(kX) + size_of(kDy));
  using X = RowsAhead<Team, kThreads, kWords, kPlaces, kX, Team::kRoomBytes, kPlaceBytes>;
  using Dy = RowsAhead<Team, kThreads, kWords, kPlaces, kDy, Team::kRoomBytes + X::kRowBytes, kPlaceBytes>;

  const Tensor &x, &dy;
  i32 part, parts;
  // All teams take all steps; some have no row in the last one.
  i32 steps = i32(ceil_div(rows_in_part(x.size[0], parts, part), kTeams));

  i32 number(i32 step) const { return part + (step * kTeams + Team::number()) * parts; }
  i32 elements(i32 step) const { return kTeams == 1 || number(step) < x.size[0] ? x.size[1] : 0; }

  // Begins to copy the rows of a step, if there is one.
  void fetch(i32 step) const {
    if constexpr (kLoose) return;
    if (step < steps) {
      X::copy(row_of(x, number(step)), step, elements(step) / 8);
      Dy::copy(row_of(dy, number(step)), step, elements(step) / 8);
    }
    arch::commit_copies();
  }
  void fetch_first() const {
#pragma unroll
    for (i32 step = 0; step < kPlaces - 1; ++step) fetch(step);
  }
  // use(n, at, x, dy) for the words of a step's row that the thread has.
  template <class Use>
  void each(i32 step, Use&& use) const {
    const i32 columns = elements(step);
    Row::template each<kWords>(columns, [&](i32 n, i32 at) {
      if constexpr (kLoose) {
        Word<kX> of_x;
        Word<kDy> of_dy;
        of_x.load_kept(row_of(x, number(step)), at, columns);
        of_dy.load_kept(row_of(dy, number(step)), at, columns);
        use(n, at, of_x, of_dy);
      } else {
        use(n, at, X::get(step, n), Dy::get(step, n));
      }
    });
  }
  void get(i32 step, Word<kX> (&of_x)[kWords], Word<kDy> (&of_dy)[kWords]) const {
    each(step,
         [&](i32 n, i32, const auto& own_x, const auto& own_dy) { of_x[n] = own_x, of_dy[n] = own_dy; });
  }
  // Stores what all teams have added up, each thread for its elements.
  void store(const Tensor& sums, float (&mine)[kWords][8]) const {
    add_teams<kThreads, Team::kThreadsOfRow>(mine);
    if (Team::number() > 0) return;
    Row::template each<kWords>(x.size[1], [&](i32 n, i32 at) {
      Word<DType::kF32>::of([&](i32 i) { return mine[n][i]; }).store(row_of(sums, part), at, x.size[1]);
    });
  }
};

}  // namespace heddle::device
