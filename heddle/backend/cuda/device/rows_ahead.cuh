// Rows on their way to shared memory while others are worked on (row_kernel.cuh). Each thread copies the elements that it needs itself,
// so that copies need no barrier.
#pragma once

#include "heddle/backend/cuda/device/row_kernel.cuh"

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

// The rows of x and dy that are one part's, row r of the part (heddle/ir/parts.h). A thread copies kPlaces - 1 of them ahead.
template <class Team, u32 kThreads, i32 kWords, i32 kPlaces, DType kX, DType kDy>
struct PartAhead {
  static constexpr u32 kPlaceBytes = kThreads * kWords * 8 * (size_of(kX) + size_of(kDy));
  using X = RowsAhead<Team, kThreads, kWords, kPlaces, kX, Team::kRoomBytes, kPlaceBytes>;
  using Dy = RowsAhead<Team, kThreads, kWords, kPlaces, kDy, Team::kRoomBytes + X::kRowBytes, kPlaceBytes>;

  const Tensor &x, &dy;
  i32 part, parts, rows;

  i32 number(i32 row) const { return part + row * parts; }
  i32 eights() const { return x.size[1] / 8; }

  // Begins to copy a row, if there is one.
  void fetch(i32 row) const {
    if (row < rows)
      X::copy(row_of(x, number(row)), row, eights()), Dy::copy(row_of(dy, number(row)), row, eights());
    arch::commit_copies();
  }
  void fetch_first() const {
#pragma unroll
    for (i32 row = 0; row < kPlaces - 1; ++row) fetch(row);
  }
  void get(i32 row, Eight<kX> (&of_x)[kWords], Eight<kDy> (&of_dy)[kWords]) const {
    Team::template each<kWords>(eights(),
                                [&](i32 n, i32) { of_x[n] = X::get(row, n), of_dy[n] = Dy::get(row, n); });
  }
};

}  // namespace heddle::device
