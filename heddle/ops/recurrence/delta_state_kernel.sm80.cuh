// The state of a scan through chunks: a warp holds 16 columns, transposed, in the order of sums of a product.
#pragma once

#include "heddle/ops/recurrence/delta_chunk_kernel.sm80.cuh"

namespace heddle::device::delta {

// Sums [16, kDeltaChunk] of a warp: 16 columns of rows of a chunk, transposed.
using ChunkSums = float[kDeltaChunk / 8][4];

// A lane's first row, or position, and its first column of the warp's. Others are at constant distances from them.
inline i32 lane_row() {
  return i32(lane()) % 4 * 2;
}
inline i32 lane_column() {
  return i32(lane()) / 4;
}

// Calls use(value, position, column) for a lane's sums, counted from the lane's first ones.
template <class Use>
inline void each_sum(ChunkSums& sums, Use&& use) {
#pragma unroll
  for (i32 t = 0; t < kDeltaChunk / 8; ++t)
#pragma unroll
    for (i32 i = 0; i < 4; ++i) use(sums[t][i], 8 * t + i % 2, i / 2 * 8);
}

inline void copy(ChunkSums& to, const ChunkSums& from) {
#pragma unroll
  for (i32 t = 0; t < kDeltaChunk / 8; ++t)
#pragma unroll
    for (i32 i = 0; i < 4; ++i) to[t][i] = from[t][i];
}

// A state [kDim, kColumns].
template <i32 kDim, i32 kColumns>
struct State {
  static constexpr i32 kBlocks = kDim / 8, kPitch = delta_pitch(kDim), kPlane = kDeltaChunk * kPitch;

  float at[kBlocks][4];

  // Calls use(value, row, column) for a lane's values, counted from the lane's first ones.
  template <class Use>
  void each(Use&& use) {
#pragma unroll
    for (i32 t = 0; t < kBlocks; ++t)
#pragma unroll
      for (i32 i = 0; i < 4; ++i) use(at[t][i], 8 * t + i % 2, i / 2 * 8);
  }

  template <DType kType>
  void load(const Tensor& from, i32 batch, i32 head, i32 column) {
    const i64 first = batch * from.stride[0] + head * from.stride[1] + column + lane_column();
    each([&](float& value, i32 row, i32 of) {
      value = load_element(kType, from.data, first + (lane_row() + row) * from.stride[2] + of);
    });
  }
  // `from`: the warp's first column of a dense state.
  void load(const float* from) {
    from += lane_row() * kColumns + lane_column();
    each([&](float& value, i32 row, i32 of) { value = from[row * kColumns + of]; });
  }
  void clear() {
    each([](float& value, i32, i32) { value = 0; });
  }
  // Its columns of the identity, from `column` on.
  void set_identity(i32 column) {
    each([&](float& value, i32 row, i32 of) {
      value = lane_row() + row == column + lane_column() + of ? 1.0f : 0.0f;
    });
  }
  // `to`: the warp's first column of a dense state.
  void store(float* to) {
    to += lane_row() * kColumns + lane_column();
    each([&](float value, i32 row, i32 of) { to[row * kColumns + of] = value; });
  }

  // sums += the transpose of rows times the state, or sums -= it. The rows are sums of those of two planes on chip.
  template <bool kTakes>
  void meet(ChunkSums& sums, const u8* rows) const {
#pragma unroll
    for (i32 s = 0; s < kBlocks / 2; ++s) {
      Left left = Left::of(at[2 * s], at[2 * s + 1]);
      if constexpr (kTakes)
#pragma unroll
        for (i32 i = 0; i < 4; ++i) left.high[i] ^= 0x80008000u, left.low[i] ^= 0x80008000u;
#pragma unroll
      for (i32 pair = 0; pair < kDeltaChunk / 16; ++pair) {
        u32 high[4], low[4];
        load_right(high, rows + 16 * pair * kPitch, kPitch, 16 * s);
        load_right(low, rows + kPlane + 16 * pair * kPitch, kPitch, 16 * s);
        add_product(sums[2 * pair], left, {high[0], high[1]}, {low[0], low[1]});
        add_product(sums[2 * pair + 1], left, {high[2], high[3]}, {low[2], low[3]});
      }
    }
  }

  void decay(float stays) {
    each([&](float& value, i32, i32) { value *= stays; });
  }
  // Adds rows [16, kDim] on chip, each times what `left` has for it.
  void add(const Left& left, const u8* rows) {
#pragma unroll
    for (i32 n = 0; n < kBlocks / 2; ++n) {
      u32 right[4];
      load_right_rows(right, rows, kPitch, 16 * n);
      add_product(at[2 * n], left, {right[0], right[1]});
      add_product(at[2 * n + 1], left, {right[2], right[3]});
    }
  }
  // Adds all rows of a chunk on chip, each times its sums.
  void add(const ChunkSums& sums, const u8* rows) {
#pragma unroll
    for (i32 s = 0; s < kDeltaChunk / 16; ++s)
      add(Left::of(sums[2 * s], sums[2 * s + 1]), rows + 16 * s * kPitch);
  }
};

// Begins copies of a chunk's two planes of prepared keys, and then of its factors.
template <i32 kDim, i32 kThreads, class Record>
inline void copy_record(u8* keys, u8* factors, const u8* record) {
  constexpr i32 kWords = kDim / 8;
#pragma unroll
  for (i32 n = 0; n < 2 * kDeltaChunk * kWords / kThreads; ++n) {
    const i32 i = n * kThreads + i32(threadIdx.x);
    arch::copy_word(keys + i / kWords * delta_pitch(kDim) + i % kWords * 16, record + i * 16, true);
  }
  if (const i32 i = i32(threadIdx.x); i < Record::kFactors / 16)
    arch::copy_word(factors + i * 16, record + 2 * Record{kDim}.plane() + i * 16, true);
}

}  // namespace heddle::device::delta
