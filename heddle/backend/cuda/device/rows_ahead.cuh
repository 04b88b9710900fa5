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

}  // namespace heddle::device
