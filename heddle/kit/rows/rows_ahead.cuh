// Rows on their way to shared memory while others are worked on. Each thread copies the elements that it needs itself,
// so that copies need no barrier.
#pragma once

#include "heddle/kit/arch/memory.cuh"
#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/rows/parts.h"
#include "heddle/kit/rows/row_share.cuh"
#include "heddle/kit/rows/vec8.cuh"

namespace heddle::device {

// Rows of one matrix: row r has place r % kPlaces, from byte kFirst of each on. A place is taken again by a row that is kPlaces
// later, which must not be copied before a barrier follows get().
template <class Team, u32 kThreads, i32 kWords, i32 kPlaces, DType kType, u32 kFirst, u32 kPlaceBytes>
struct RowsAhead {
  static constexpr u32 kRowBytes = kThreads * kWords * 8 * size_of(kType);

  static void copy(const u8* from, i32 row, i32 eights) {
    Team::template each<kWords>(
        eights, [&](i32 n, i32 at) { Vec8<kType>::copy(from, at, [&](i32 i) { return word(row, n, i); }); });
  }
  static Vec8<kType> get(i32 row, i32 n) {
    Vec8<kType> value;
#pragma unroll
    for (i32 i = 0; i < Vec8<kType>::kWords; ++i) value.words[i] = *word(row, n, i);
    return value;
  }

 private:
  static uint4* word(i32 row, i32 n, i32 i) {
    u8* const place = arch::dynamic_shared() + u32(row % kPlaces) * kPlaceBytes + kFirst;
    return reinterpret_cast<uint4*>(place) + (n * Vec8<kType>::kWords + i) * i32(kThreads) + threadIdx.x;
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

// The rows that are one part's (heddle/kit/rows/parts.h). The teams of a CTA have a row each at every step; all take all steps, and some
// have no row in the last one.
template <class Team, u32 kThreads>
struct PartRows {
  static constexpr i32 kTeams = kThreads / Team::kThreadsOfRow;

  const Tensor &x, &dy;
  i32 part, parts;
  i32 steps = i32(ceil_div(rows_in_part(x.size[0], parts, part), kTeams));

  PartRows(const Tensor& x, const Tensor& dy, i32 part, i32 parts) : x(x), dy(dy), part(part), parts(parts) {}
  i32 number(i32 step) const { return part + (step * kTeams + Team::number()) * parts; }
  i32 elements(i32 step) const {
    return step < steps && (kTeams == 1 || number(step) < x.size[0]) ? x.size[1] : 0;
  }
  // Stores what all teams have added up, each thread for its elements.
  template <class Row, i32 kWords>
  void store(const Tensor& sums, float (&mine)[kWords][8]) const {
    add_teams<kThreads, Team::kThreadsOfRow>(mine);
    if (Team::number() > 0) return;
    Row::template each<kWords>(x.size[1], [&](i32 n, i32 at) {
      using Word = typename Row::template Word<DType::kF32>;
      const auto value = [&](i32 i) { return mine[n][i]; };
      if constexpr (Row::kWaits)
        Word::of(value).store_each(row_of(sums, part), at, x.size[1]);
      else
        Word::of(value).store(row_of(sums, part), at, x.size[1]);
    });
  }
};

// Rows of x and dy by way of shared memory. A turn takes the rows of Config::kRows steps, whose sums are then made at once: with one row
// at a time, warps wait for each other longer than for memory. kTurns: turns whose rows are needed at once.
template <class Team, class Config, i32 kTurns, DType kX, DType kDy, bool kLoose = Config::kShare != kVec8>
struct PartAhead : PartRows<Team, Config::kThreads> {
  using Rows = PartRows<Team, Config::kThreads>;
  using Rows::elements, Rows::number, Rows::steps, Rows::Rows;
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kWords = Config::kWords, kPlaces = Config::kPlaces, kRows = Config::kRows;
  static constexpr u32 kPlaceBytes = kThreads * kWords * 8 * (size_of(kX) + size_of(kDy));
  using X = RowsAhead<Team, kThreads, kWords, kPlaces, kX, Team::kRoomBytes, kPlaceBytes>;
  using Dy = RowsAhead<Team, kThreads, kWords, kPlaces, kDy, Team::kRoomBytes + X::kRowBytes, kPlaceBytes>;
  static_assert(kPlaces >= kTurns * kRows);

  void fetch_first() {
#pragma unroll
    for (i32 step = 0; step < kPlaces - kRows; ++step) fetch(step);
  }
  void wait() { arch::wait_copies(kPlaces - kTurns * kRows); }
  // The rows of a turn, which begins with this step; begins to copy those of a later one.
  void take(i32 step, Vec8<kX> (&of_x)[kRows][kWords], Vec8<kDy> (&of_dy)[kRows][kWords]) {
#pragma unroll
    for (i32 r = 0; r < kRows; ++r) fetch(step + kPlaces - kRows + r);
    wait();
#pragma unroll
    for (i32 r = 0; r < kRows; ++r)
      each(step + r,
           [&](i32 n, const auto& own_x, const auto& own_dy) { of_x[r][n] = own_x, of_dy[r][n] = own_dy; });
  }
  // use(n, x, dy) for the words that the thread has of a step's row. With two turns it may be one of the turn after take()'s.
  template <class Use>
  void each(i32 step, Use&& use) const {
    Team::template each<kWords>(elements(step) / 8,
                                [&](i32 n, i32) { use(n, X::get(step, n), Dy::get(step, n)); });
  }

 private:
  void fetch(i32 step) const {
    if (step < steps) {
      X::copy(row_of(this->x, number(step)), step, elements(step) / 8);
      Dy::copy(row_of(this->dy, number(step)), step, elements(step) / 8);
    }
    arch::commit_copies();
  }
};

// Rows that are no words of 16 bytes: registers keep those of the next step, where there are enough.
template <class Team, class Config, i32 kTurns, DType kX, DType kDy>
struct PartAhead<Team, Config, kTurns, kX, kDy, true> : PartRows<Team, Config::kThreads> {
  using Rows = PartRows<Team, Config::kThreads>;
  using Rows::elements, Rows::number, Rows::steps, Rows::Rows;
  using Row = RowShare<Team, Config::kShare, Config::kWords>;
  template <DType kType>
  using Word = typename Row::template Word<kType>;

  static constexpr i32 kWords = Config::kWords;
  static constexpr bool kKeeps = kWords * kTurns <= 2;
  static_assert(Config::kRows == 1);

  void fetch_first() { load(0); }
  void wait() {}
  void take(i32 step, Word<kX> (&of_x)[1][kWords], Word<kDy> (&of_dy)[1][kWords]) {
    each(step,
         [&](i32 n, const auto& own_x, const auto& own_dy) { of_x[0][n] = own_x, of_dy[0][n] = own_dy; });
    Row::settle(of_x[0]), Row::settle(of_dy[0]);
    load(step + 1);
  }
  template <class Use>
  void each(i32 step, Use&& use) const {
    const i32 columns = elements(step);
    Row::template each<kWords>(columns, [&](i32 n, i32 at) {
      if constexpr (kKeeps) return use(n, next_x_[n], next_dy_[n]);
      Word<kX> of_x;
      Word<kDy> of_dy;
      of_x.load(row_of(this->x, number(step)), at, columns);
      of_dy.load(row_of(this->dy, number(step)), at, columns);
      use(n, of_x, of_dy);
    });
  }

 private:
  void load(i32 step) {
    if (!kKeeps || step >= steps) return;
    const i32 columns = elements(step);
    Row::template each<kWords>(columns, [&](i32 n, i32 at) {
      next_x_[n].load(row_of(this->x, number(step)), at, columns);
      next_dy_[n].load(row_of(this->dy, number(step)), at, columns);
    });
  }

  Word<kX> next_x_[kWords];
  Word<kDy> next_dy_[kWords];
};

}  // namespace heddle::device
