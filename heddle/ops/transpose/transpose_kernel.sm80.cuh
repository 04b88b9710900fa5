// A transposition in tiles on chip. Where rows are words of 16 bytes on both sides, ldmatrix turns blocks of 8 x 8 elements of 16 bits,
// then four lanes exchange words so that each has 16 neighbouring bytes of y. Elsewhere a thread has an element of 32 bits at a
// time, or a pair of 16.
#pragma once

#include "heddle/kit/arch/matrices.cuh"
#include "heddle/kit/arch/memory.cuh"
#include "heddle/kit/arch/mma.cuh"
#include "heddle/kit/kernel.cuh"
#include "heddle/kit/move/store_pair.cuh"
#include "heddle/kit/rows/vec8.cuh"
#include "heddle/ops/transpose/transpose.h"

namespace heddle::device::transpose {

struct KernelConfig {
  static constexpr u32 kThreads = 256;
  static constexpr i32 kRows = 64, kColumns = 64;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kRows = Config::kRows, kColumns = Config::kColumns;
  static constexpr i32 kRowWords = kColumns / 8, kLoads = kRows * kRowWords / i32(kThreads);
  static_assert(kRows % 32 == 0 && kColumns % 64 == 0);

  // Word w of row r; words of a line of 128 bytes are permuted, so that neither side meets a bank twice.
  static constexpr i32 place(i32 r, i32 w) { return r * kColumns * 2 + w / 8 * 128 + ((w % 8 ^ r % 8) * 16); }

  static void run(const Transpose& a, const TensorMap*, u8*) {
    __shared__ __align__(128) u8 tile[kRows * kColumns * 2];
    const i32 rows = a.x.size[0], columns = a.x.size[1], wide = (columns + kColumns - 1) / kColumns;
    const i32 r0 = i32(blockIdx.x) / wide * kRows, c0 = i32(blockIdx.x) % wide * kColumns;
    const i32 t = i32(threadIdx.x);
    uint4 words[kLoads];
#pragma unroll
    for (i32 i = 0; i < kLoads; ++i) {
      const i32 at = t + i32(kThreads) * i, r = r0 + at / kRowWords, c = c0 + at % kRowWords * 8;
      words[i] = {};
      if (r < rows && c < columns) words[i] = arch::load_constant(row_of(a.x, r) + 2 * i64(c));
    }
#pragma unroll
    for (i32 i = 0; i < kLoads; ++i) {
      const i32 at = t + i32(kThreads) * i;
      *reinterpret_cast<uint4*>(tile + place(at / kRowWords, at % kRowWords)) = words[i];
    }
    __syncthreads();
    const i32 lane = t % 32, q = lane % 4;
#pragma unroll
    for (i32 w = t / 32; w < kRowWords; w += i32(kThreads) / 32)  // eight columns of x
#pragma unroll
      for (i32 h = 0; h < kRows; h += 32) {  // 32 rows of x
        const uint4 mine = turned(tile + place(h + lane, w), q);
        const i32 r = r0 + h + q * 8, c = c0 + w * 8 + lane / 4;
        if (r < rows && c < columns) arch::store_once(row_of(a.y, c) + 2 * i64(r), mine);
      }
  }

 private:
  // Returns, of four blocks whose rows the lanes name, eight neighbouring elements of a row of y.
  static uint4 turned(const u8* row, i32 q) {
    u32 v[4], mine[4];
    arch::load_transposed(v, row);
    // A lane has word q of its row in each of four blocks; it shall have all words of block q.
#pragma unroll
    for (i32 step = 0; step < 4; ++step) {
      const i32 other = q ^ step;
      const u32 given = other == 0 ? v[0] : other == 1 ? v[1] : other == 2 ? v[2] : v[3];
      const u32 taken = __shfl_xor_sync(~0u, given, step);
#pragma unroll
      for (i32 i = 0; i < 4; ++i) mine[i] = other == i ? taken : step == 0 ? taken : mine[i];
    }
    return {mine[0], mine[1], mine[2], mine[3]};
  }
};

// Tiles of 64 x 64 elements of 16 or 32 bits, whose rows begin anywhere.
template <class Config>
struct ElementKernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kSide = 64, kSize = size_of(Config::types().x.dtype), kWarps = kThreads / 32;
  static_assert(kSize == 2 || kSize == 4);

  static void run(const Transpose& a, const TensorMap*, u8*) {
    const i32 wide = (a.x.size[1] + kSide - 1) / kSide;
    const i32 r0 = i32(blockIdx.x) / wide * kSide, c0 = i32(blockIdx.x) % wide * kSide;
    if constexpr (kSize == 4)
      turn_words(a, r0, c0);
    else
      turn_pairs(a, r0, c0);
  }

 private:
  static i32 lane() { return i32(threadIdx.x % 32); }
  static i32 warp() { return i32(threadIdx.x / 32); }

  // A line of the tile is one word longer than a row, so that neither side meets a bank twice.
  static void turn_words(const Transpose& a, i32 r0, i32 c0) {
    __shared__ u32 tile[kSide][kSide + 1];
    u32 words[kSide / kWarps][2];
#pragma unroll
    for (i32 i = 0; i < kSide / kWarps; ++i)
#pragma unroll
      for (i32 j = 0; j < 2; ++j) {
        const i32 r = r0 + warp() + i * kWarps, c = c0 + lane() + j * 32;
        words[i][j] = 0;
        if (r < a.x.size[0] && c < a.x.size[1]) words[i][j] = reinterpret_cast<const u32*>(row_of(a.x, r))[c];
      }
#pragma unroll
    for (i32 i = 0; i < kSide / kWarps; ++i)
#pragma unroll
      for (i32 j = 0; j < 2; ++j) tile[warp() + i * kWarps][lane() + j * 32] = words[i][j];
    __syncthreads();
#pragma unroll
    for (i32 i = 0; i < kSide / kWarps; ++i)
#pragma unroll
      for (i32 j = 0; j < 2; ++j) {
        const i32 c = warp() + i * kWarps, r = lane() + j * 32;
        if (r0 + r < a.x.size[0] && c0 + c < a.x.size[1])
          reinterpret_cast<u32*>(row_of(a.y, c0 + c))[r0 + r] = tile[r][c];
      }
  }

  // Even rows of the tile come before odd ones: lanes then read pairs of rows from different banks.
  static i32 line_of(i32 r) { return r / 2 + r % 2 * (kSide / 2); }
  static void turn_pairs(const Transpose& a, i32 r0, i32 c0) {
    constexpr i32 kPairs = kSide / 2;
    __shared__ u32 tile[kSide][kPairs + 1];
    u32 pairs[kSide / kWarps];
#pragma unroll
    for (i32 i = 0; i < kSide / kWarps; ++i) {
      const i32 r = r0 + warp() + i * kWarps;
      pairs[i] = r < a.x.size[0] ? load_pair(a.x, r, c0 + 2 * lane()) : 0;
    }
#pragma unroll
    for (i32 i = 0; i < kSide / kWarps; ++i) tile[line_of(warp() + i * kWarps)][lane()] = pairs[i];
    __syncthreads();
#pragma unroll
    for (i32 i = 0; i < kPairs / kWarps; ++i) {
      const i32 pair = warp() + i * kWarps, c = c0 + 2 * pair, r = r0 + 2 * lane();
      const u32 first = tile[line_of(2 * lane())][pair], second = tile[line_of(2 * lane() + 1)][pair];
      store_pair(a.y, c, r, (first & 0xffff) | second << 16);
      store_pair(a.y, c + 1, r, first >> 16 | (second & 0xffff0000));
    }
  }
  // Elements `at`, which is even, and the next one of a row.
  static u32 load_pair(const Tensor& matrix, i32 row, i32 at) {
    const u16* const from = reinterpret_cast<const u16*>(row_of(matrix, row)) + at;
    const i32 count = matrix.size[1] - at;
    if (count >= 2 && matrix.stride[0] % 2 == 0) return *reinterpret_cast<const u32*>(from);
    return (count > 0 ? u32(from[0]) : 0) | (count > 1 ? u32(from[1]) << 16 : 0);
  }
  static void store_pair(const Tensor& matrix, i32 row, i32 at, u32 pair) {
    u16* const to = reinterpret_cast<u16*>(row_of(matrix, row)) + at;
    const i32 count = row < matrix.size[0] ? matrix.size[1] - at : 0;
    if (count >= 2 && matrix.stride[0] % 2 == 0) {
      *reinterpret_cast<u32*>(to) = pair;
    } else {
      if (count > 0) to[0] = u16(pair);
      if (count > 1) to[1] = u16(pair >> 16);
    }
  }
};

}  // namespace heddle::device::transpose
