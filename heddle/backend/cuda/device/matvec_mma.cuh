// Panels of bf16 times one row on tensor cores. A chunk of a panel, 512 bytes, is two rows by 128 of K; the 16 bytes of a
// lane are its four registers of the left matrix of mma.m16n8k16 as they lie. So its 16 rows are (four quarters of the
// chunk's K) x (two rows) x (even or odd pairs of elements), and columns of the right matrix are the same quarters and
// pairs of x. x comes as a high and a low half of bf16, so that it keeps 16 bits. Sums count where both sides have the
// same quarter and pairs: eight times the products that are needed, in a tenth of the instructions.
#pragma once

#include "heddle/backend/cuda/device/consumers.cuh"
#include "heddle/backend/cuda/device/ring.cuh"
#include "heddle/backend/cuda/device/view.cuh"

namespace heddle::device {

constexpr i32 kChunkBytes = 512;    // a warp's load of a panel, 16 bytes a lane; and of x as it is arranged
constexpr i32 kMmaChunkCols = 128;  // of K
constexpr i32 kMmaSegments = kMmaChunkCols / 8;
constexpr i32 kMmaSlots = 4;  // that a panel may take
constexpr i32 kNoColumn = 1 << 30;

// Whether x is arranged for products with w.
inline bool by_mma(const Matrix& x, const Weight& w) {
  return kUses[int(DType::kBf16)] && w.data.dtype == DType::kBf16 && x.dtype == DType::kF32 && x.rows == 1 &&
         w.panel_bytes() <= kMmaSlots * kRingSlotBytes;
}

// Which pairs of its eight elements a thread's two words have: {0, 1} and {2, 3}, or {0, 2} and {1, 3}.
enum class PairOrder { kInOrder, kEvenFirst };

// Splits a row of floats, in place, into what lanes read of it: of eight elements, 32 bytes, two words have two pairs
// each. In order they are the left matrix of a group, high and low halves of each pair in turn; else the right matrix
// beside long panels, first high halves, then low ones. Columns past the end are zeros.
inline void arrange_row(const Matrix& x, PairOrder order) {
  const i32 octets = (x.cols + kMmaChunkCols - 1) / kMmaChunkCols * kMmaSegments;
  for (i32 at = i32(arch::thread()); at < octets; at += kConsumers) {
    Octet values;
    values.load(x.row(0), at);
    values.decode(DType::kF32);
    u32 high[4], low[4];
#pragma unroll
    for (i32 i = 0; i < 4; ++i) {
      const float first = values.value[2 * i], second = values.value[2 * i + 1];
      high[i] = arch::pack_bf16(first, second);
      low[i] = arch::pack_bf16(first - __uint_as_float(high[i] << 16),
                               second - __uint_as_float(high[i] & 0xffff0000u));
    }
    uint4* to = reinterpret_cast<uint4*>(x.data) + 2 * at;
    if (order == PairOrder::kInOrder) {
      to[0] = {high[0], low[0], high[1], low[1]};
      to[1] = {high[2], low[2], high[3], low[3]};
    } else {
      to[0] = {high[0], high[2], low[0], low[2]};
      to[1] = {high[1], high[3], low[1], low[3]};
    }
  }
}

// What one lane has of x: kChunks chunks, the first of them `first`, the others `step` apart.
template <i32 kChunks>
class MmaPart {
 public:
  MmaPart(const Matrix& x, i64 panel_bytes, i32 first, i32 step) {
#pragma unroll
    for (i32 c = 0; c < kChunks; ++c) {
      const i32 begin = (first + c * step) * kChunkBytes;
      inside_[c] = begin + place() < panel_bytes;
      if (begin < panel_bytes) x_[c] = *reinterpret_cast<const uint4*>(x.data + begin + place());
    }
  }
  // Where the lane has its 16 bytes of a chunk of a panel: row lane / 4 % 2 of segment lane % 4 of quarter lane / 8. And of
  // a chunk of x: its segment's word lane / 4 % 2.
  static i32 place() {
    const i32 lane = i32(arch::thread() % 32);
    return (lane / 8 * 4 + lane % 4) * 32 + lane / 4 % 2 * 16;
  }
  // Products with chunks [kFirst, kFirst + kCount) of a panel, `stride` bytes apart; `bytes` is this lane's place in
  // the first.
  template <i32 kFirst, i32 kCount>
  float dot(const u8* bytes, i32 stride) const {
    float high[4] = {}, low[4] = {};
#pragma unroll
    for (i32 c = 0; c < kCount; ++c) {
      uint4 word{};
      if (inside_[kFirst + c]) word = *reinterpret_cast<const uint4*>(bytes + c * stride);
      const uint4& x = x_[kFirst + c];
      arch::multiply_add<true>(high, {word.x, word.y, word.z, word.w}, {x.x, x.y});
      arch::multiply_add<true>(low, {word.x, word.y, word.z, word.w}, {x.z, x.w});
    }
    const i32 lane = i32(arch::thread() % 32);
    return lane % 4 == lane / 8 ? (high[0] + low[0]) + (high[3] + low[3]) : 0.0f;
  }
  // Sums of two panels over all lanes; which column of theirs a lane has then, of four, or none.
  static float join(float first, float second) {
    const bool odd = arch::thread() & 1;
    float sum = __shfl_xor_sync(~0u, odd ? first : second, 1) + (odd ? second : first);
    sum += __shfl_xor_sync(~0u, sum, 2);
    sum += __shfl_xor_sync(~0u, sum, 8);
    return sum + __shfl_xor_sync(~0u, sum, 16);
  }
  static i32 column() {
    const i32 lane = i32(arch::thread() % 32);
    return (lane & ~5) == 0 ? lane % 2 * 2 + lane / 4 : kNoColumn;
  }

 private:
  uint4 x_[kChunks] = {};
  bool inside_[kChunks];
};

}  // namespace heddle::device
