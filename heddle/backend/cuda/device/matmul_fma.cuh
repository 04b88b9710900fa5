// Products of two matrices as they lie in memory, one of which is f32: multiply-adds of the threads. On chip a *chunk* has 16 k of
// both sides of a tile, k after k, so that a thread reads its rows, and its columns, four at a time.
#pragma once

#include "heddle/backend/cuda/device/matmul_load.cuh"
#include "heddle/kit/arch/thread.cuh"

namespace heddle::device {

// Tiles of kSquares * 64 rows and columns.
template <i32 kSquares>
class ThreadProduct {
 public:
  static constexpr i32 kSide = 64 * kSquares;
  // Rows and columns of the tile begin four banks further in the next k.
  static constexpr i32 kStride = kSide + 4, kRight = kUnit * kStride, kSlabBytes = 2 * kRight * 4;

  ThreadProduct(const Side& left, const Side& right, DType, u8* slabs, i32 count)
      : left_(left), right_(right), chunks_(reinterpret_cast<float*>(slabs)), count_(count) {}

  __forceinline__ void multiply(const Plane& fragment, i32 row, i32 col) const {
    const i32 size = left_.matrix.cols();
    Sums sums = {};
    Unit<16> units[kUnits];
    load(units, 0);
    sync_consumers();  // all warps have read the chunks of the previous tile
    float* chunk = chunks_;
#pragma unroll 1
    for (i32 k = 0; k < size; k += kUnit) {
      if (count_ == 1) sync_consumers();  // all warps have read the previous chunk
      store(units, k, chunk);
      sync_consumers();
      load(units, k + kUnit);
      add_chunk(sums, chunk);
      if (count_ > 1) chunk = chunk == chunks_ ? chunks_ + kSlabBytes / 4 : chunks_;
    }
    sync_consumers();  // the sums may overwrite chunks
    store_sums(fragment, row, col, sums);
  }

 private:
  static constexpr i32 kColThreads = 16, kRowThreads = kConsumers / kColThreads;
  static constexpr i32 kRows = kSide / kRowThreads, kCols = kSide / kColThreads;  // for a thread
  static constexpr i32 kUnits = (2 * kSide + kConsumers - 1) / kConsumers;
  static_assert(kRows % 4 == 0 && kCols % 4 == 0, "no shape of tiles for so many warps");
  using Sums = float[kRows][kCols];

  // The number of unit i of the thread: those of the left side come first.
  static i32 number(i32 i) { return i32(arch::thread()) + i * kConsumers; }
  __forceinline__ void load(Unit<16> (&units)[kUnits], i32 k) const {
#pragma unroll
    for (i32 i = 0; i < kUnits; ++i)
      if (number(i) < kSide)
        load(units[i], left_, number(i), k);
      else if (number(i) < 2 * kSide)
        load(units[i], right_, number(i) - kSide, k);
  }
  __forceinline__ void store(const Unit<16> (&units)[kUnits], i32 k, float* chunk) const {
#pragma unroll
    for (i32 i = 0; i < kUnits; ++i)
      if (number(i) < kSide)
        store(units[i], left_, number(i), k, chunk);
      else if (number(i) < 2 * kSide)
        store(units[i], right_, number(i) - kSide, k, chunk + kRight);
  }

  // The first element of a side's unit: how far it is across, and at which k. Neighbouring units store to different banks.
  static i32 across(const Side& side, i32 number) { return side.along_k ? number : number / kUnit * kUnit; }
  static i32 at_k(const Side& side, i32 number) { return side.along_k ? 0 : number % kUnit; }
  static __forceinline__ void load(Unit<16>& unit, const Side& side, i32 number, i32 k) {
    k += at_k(side, number);
    unit.load(side, side.row(across(side, number), k), side.col(across(side, number), k));
  }
  static __forceinline__ void store(const Unit<16>& unit, const Side& side, i32 number, i32 k, float* chunk) {
    const i32 at = across(side, number), in_chunk = at_k(side, number);
    float* to = chunk + in_chunk * kStride + at;
#pragma unroll
    for (i32 g = 0; g < kUnit / 4; ++g) {
      float v[4];
      unit.decode(side, side.row(at, k + in_chunk), side.col(at, k + in_chunk), g, v);
      if (side.along_k) {
#pragma unroll
        for (i32 j = 0; j < 4; ++j) to[(4 * g + j) * kStride] = v[j];
      } else {
        reinterpret_cast<float4*>(to)[g] = {v[0], v[1], v[2], v[3]};
      }
    }
  }

  static i32 row_of_thread() { return i32(arch::thread()) / kColThreads * 4; }
  static i32 col_of_thread() { return i32(arch::thread()) % kColThreads * 4; }
  // Four neighbouring rows of a thread, then four more after those of all threads.
  static i32 place(i32 i, i32 threads) { return i / 4 * (4 * threads) + i % 4; }

  static __forceinline__ void add_chunk(Sums& sums, const float* chunk) {
    const float *left = chunk + row_of_thread(), *right = chunk + kRight + col_of_thread();
#pragma unroll 8
    for (i32 k = 0; k < kUnit; ++k) {
      float a[kRows], b[kCols];
      read(a, left + k * kStride, kRowThreads);
      read(b, right + k * kStride, kColThreads);
#pragma unroll
      for (i32 i = 0; i < kRows; ++i)
#pragma unroll
        for (i32 j = 0; j < kCols; ++j) sums[i][j] = fma(a[i], b[j], sums[i][j]);
    }
  }
  template <i32 kCount>
  static __forceinline__ void read(float (&v)[kCount], const float* from, i32 threads) {
#pragma unroll
    for (i32 i = 0; i < kCount; i += 4) {
      const float4 four = *reinterpret_cast<const float4*>(from + place(i, threads));
      v[i] = four.x, v[i + 1] = four.y, v[i + 2] = four.z, v[i + 3] = four.w;
    }
  }

  static __forceinline__ void store_sums(const Plane& fragment, i32 row, i32 col, const Sums& sums) {
#pragma unroll
    for (i32 i = 0; i < kRows; ++i) {
      const i32 m = row + row_of_thread() + place(i, kRowThreads);
      if (m >= fragment.rows) continue;
      auto* to = reinterpret_cast<float*>(fragment.data + m * fragment.stride);
#pragma unroll
      for (i32 j = 0; j < kCols; ++j)
        if (const i32 n = col + col_of_thread() + place(j, kColThreads); n < fragment.cols)
          to[n] = sums[i][j];
    }
  }

  const Side left_, right_;
  float* const chunks_;
  const i32 count_;
};

}  // namespace heddle::device
