// Parts of the whole kernels of gated_delta_rule and its gradient: rows and gates of a chunk on chip, and products of floats as sums of
// two bf16.
#pragma once

#include "heddle/kit/arch/memory.cuh"
#include "heddle/kit/arch/mma.cuh"
#include "heddle/kit/arch/numbers.cuh"
#include "heddle/kit/kernel.cuh"
#include "heddle/kit/value/value.cuh"
#include "heddle/ops/recurrence/delta_memory.h"

namespace heddle::device::delta {

// A chunk of a head.
struct Chunk {
  i32 batch, head, number, first, positions;

  template <class Args>
  static Chunk of(const Args& a, i32 head, i32 number) {
    const i32 heads = a.q.size[2];
    return {head / heads, head % heads, number, number * kDeltaChunk, a.q.size[1]};
  }
  // Address of an element of the chunk's row `i` of a tensor [B, T, H, columns].
  template <i32 kBytes>
  u8* at(const Tensor& tensor, i32 i, i32 column) const {
    return tensor.data +
           (batch * tensor.stride[0] + i64(first + i) * tensor.stride[1] + head * tensor.stride[2] + column) *
               kBytes;
  }
  bool has(i32 i) const { return first + i < positions; }
};

// Begins copies of kColumns columns of the chunk's rows, from `first` on. Rows after the last position are zeros, and columns from
// `columns` on.
template <i32 kColumns, i32 kThreads>
inline void copy_rows(u8* to, const Tensor& from, const Chunk& chunk, i32 first = 0, i32 columns = kColumns) {
  constexpr i32 kWords = kColumns / 8, kAll = kDeltaChunk * kWords;
#pragma unroll
  for (i32 n = 0; n < (kAll + kThreads - 1) / kThreads; ++n) {
    const i32 i = n * kThreads + i32(threadIdx.x), row = i / kWords, word = i % kWords;
    if (kAll % kThreads != 0 && i >= kAll) break;
    const bool there = chunk.has(row) && word * 8 < columns;
    arch::copy_word(to + row * delta_pitch(kColumns) + word * 16,
                    chunk.at<2>(from, there ? row : 0, there ? first + word * 8 : 0), there);
  }
}

// A warp stores the chunk's betas, and the logarithms of decays from the chunk's begin to each position. Positions after the last one
// write nothing, and nothing decays there.
template <DType kGate, DType kBeta, class Args>
inline void store_gates(float* decays, float* betas, const Args& a, const Chunk& chunk) {
  const i32 i = i32(lane());
  const auto gate = [&](const Tensor& tensor, DType type) {
    const i64 place = chunk.batch * tensor.stride[0] + i64(chunk.first + i) * tensor.stride[1] +
                      chunk.head * tensor.stride[2];
    return chunk.has(i) ? load_element(type, tensor.data, place) : 0.0f;
  };
  float sum = gate(a.g, kGate);
#pragma unroll
  for (i32 s = 1; s < 32; s *= 2) {
    const float before = __shfl_sync(~0u, sum, max(i - s, 0));
    if (i >= s) sum += before;
  }
  decays[i] = sum;
  betas[i] = gate(a.beta, kBeta);
}
static_assert(kDeltaChunk == 32);

inline float decay(float logarithm) {
  return arch::exp2(logarithm * 1.4426950408889634f);
}

// Two floats as two bf16 each, whose sum has 16 bits of fraction.
struct Halves {
  u32 high, low;

  static Halves of(float first, float second) {
    const u32 high = arch::pack_bf16(first, second);
    return {high, arch::pack_bf16(first - __uint_as_float(high << 16),
                                  second - __uint_as_float(high & 0xffff0000u))};
  }
};

// The left operand of a product, [16, 16].
struct Left {
  u32 high[4], low[4];

  void set(i32 i, float first, float second) {
    const Halves halves = Halves::of(first, second);
    high[i] = halves.high, low[i] = halves.low;
  }
  // Takes two blocks of sums [16, 8] side by side.
  static Left of(const float (&first)[4], const float (&second)[4]) {
    Left made;
    made.set(0, first[0], first[1]), made.set(1, first[2], first[3]);
    made.set(2, second[0], second[1]), made.set(3, second[2], second[3]);
    return made;
  }
  // Takes what `value` gives, from a row and column on.
  template <class Value>
  static Left of(i32 row, i32 column, Value&& value) {
    Left made;
    const i32 r = row + i32(lane()) / 4, c = column + i32(lane()) % 4 * 2;
#pragma unroll
    for (i32 i = 0; i < 4; ++i) {
      const i32 at = r + i % 2 * 8, from = c + i / 2 * 8;
      made.set(i, value(at, from), value(at, from + 1));
    }
    return made;
  }
};

// The right operand of a product, [16, 8], of columns of floats: value(i) is a lane's value i rows below its first one.
struct Right {
  u32 high[2], low[2];

  template <class Value>
  static Right of(i32 row, Value&& value) {
    const Halves first = Halves::of(value(row), value(row + 1)),
                 second = Halves::of(value(row + 8), value(row + 9));
    return {{first.high, second.high}, {first.low, second.low}};
  }
};

// sums += left right, the smaller products first.
inline void add_product(float (&sums)[4], const Left& left, const u32 (&right)[2]) {
  arch::multiply_add<true>(sums, left.low, right);
  arch::multiply_add<true>(sums, left.high, right);
}
inline void add_product(float (&sums)[4], const Left& left, const u32 (&high)[2], const u32 (&low)[2]) {
  arch::multiply_add<true>(sums, left.high, low);
  add_product(sums, left, high);
}

// Rows on chip as a left operand: rows [16, 16] from `rows` on.
inline void load_left(u32 (&to)[4], const u8* rows, i32 pitch, i32 column) {
  arch::load_matrices(to, rows + i32(lane()) % 16 * pitch + (column + i32(lane()) / 16 * 8) * 2);
}
// As two right operands, of rows that are columns of the product, 16 of them.
inline void load_right(u32 (&to)[4], const u8* rows, i32 pitch, i32 column) {
  const i32 row = i32(lane()) % 8 + i32(lane()) / 16 * 8;
  arch::load_matrices(to, rows + row * pitch + (column + i32(lane()) / 8 % 2 * 8) * 2);
}
// As two right operands, of 16 rows and 16 of their columns.
inline void load_right_rows(u32 (&to)[4], const u8* rows, i32 pitch, i32 column) {
  arch::load_transposed(to, rows + i32(lane()) % 16 * pitch + (column + i32(lane()) / 16 * 8) * 2);
}

// A warp's quarter of the products of all rows of two chunks on chip: calls use(i, j, product).
template <i32 kDim, class Use>
inline void multiply_rows(const u8* left, const u8* right, Use&& use) {
  constexpr i32 kPitch = delta_pitch(kDim);
  const i32 warp = i32(threadIdx.x) / 32, row = warp / 2 * 16, column = warp % 2 * 16;
  float sums[2][4] = {};
#pragma unroll
  for (i32 at = 0; at < kDim; at += 16) {
    u32 rows[4], columns[4];
    load_left(rows, left + row * kPitch, kPitch, at);
    load_right(columns, right + column * kPitch, kPitch, at);
    arch::multiply_add<true>(sums[0], rows, {columns[0], columns[1]});
    arch::multiply_add<true>(sums[1], rows, {columns[2], columns[3]});
  }
#pragma unroll
  for (i32 t = 0; t < 2; ++t)
#pragma unroll
    for (i32 i = 0; i < 4; ++i)
      use(row + i32(lane()) / 4 + i / 2 * 8, column + 8 * t + i32(lane()) % 4 * 2 + i % 2, sums[t][i]);
}

// Calls use(row, column, first, second) for neighbouring columns of a square, of which `square` gives values, times rows on chip.
template <i32 kColumns, i32 kThreads, class Square, class Use>
inline void multiply_square(Square&& square, const u8* rows, Use&& use) {
  constexpr i32 kRow = delta_pitch(kColumns);
  Left left[2][2];
#pragma unroll
  for (i32 m = 0; m < 2; ++m)
#pragma unroll
    for (i32 s = 0; s < 2; ++s) left[m][s] = Left::of(16 * m, 16 * s, square);
  for (i32 n = i32(threadIdx.x) / 32 * 16; n < kColumns; n += kThreads / 32 * 16) {
    float sums[2][2][4] = {};
#pragma unroll
    for (i32 s = 0; s < 2; ++s) {
      u32 right[4];
      load_right_rows(right, rows + 16 * s * kRow, kRow, n);
#pragma unroll
      for (i32 m = 0; m < 2; ++m) {
        add_product(sums[m][0], left[m][s], {right[0], right[1]});
        add_product(sums[m][1], left[m][s], {right[2], right[3]});
      }
    }
#pragma unroll
    for (i32 m = 0; m < 2; ++m)
#pragma unroll
      for (i32 t = 0; t < 2; ++t)
#pragma unroll
        for (i32 half = 0; half < 2; ++half)
          use(16 * m + i32(lane()) / 4 + 8 * half, n + 8 * t + i32(lane()) % 4 * 2, sums[m][t][2 * half],
              sums[m][t][2 * half + 1]);
  }
}

// Stores prepared keys, a square times the keys on chip, to a record.
template <class Record, i32 kDim, i32 kThreads, class Square>
inline void store_keys(u8* record, const u8* keys, Square&& square) {
  multiply_square<kDim, kThreads>(square, keys, [&](i32 i, i32 column, float first, float second) {
    const Halves halves = Halves::of(first, second);
    u32* const to = reinterpret_cast<u32*>(record + (i * kDim + column) * 2);
    to[0] = halves.high, to[Record{kDim}.plane() / 4] = halves.low;
  });
}

// The value, or NaN where it is infinite: fp64 has NaN in some of those places, as sums there have other parts.
inline float told(float value) {
  return value + (value - value);
}

}  // namespace heddle::device::delta
