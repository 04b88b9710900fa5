// Two neighbouring columns of a row: in a register, and stored to a matrix.
#pragma once

#include "heddle/kit/arch/numbers.cuh"
#include "heddle/kit/value/value.cuh"

namespace heddle::device {

template <DType kType>
inline u32 pack_pair(float first, float second) {
  static_assert(kType == DType::kBf16 || kType == DType::kF16);
  return kType == DType::kBf16 ? arch::pack_bf16(first, second) : arch::pack_f16(first, second);
}

// Stores pair `number` of a row.
template <DType kType>
inline void put_pair(u8* row, i32 number, float first, float second) {
  if constexpr (kType == DType::kF32)
    reinterpret_cast<float2*>(row)[number] = {first, second};
  else
    reinterpret_cast<u32*>(row)[number] = pack_pair<kType>(first, second);
}

// Stores two columns of a row, as far as the matrix has them. `column` is even. kInPairs: rows begin at multiples of 16 bytes.
template <DType kType, bool kInPairs = true>
inline void store_pair(const Tensor& y, i32 row, i32 column, float first, float second) {
  u8* const to = y.data + (row * y.stride[0] + column) * size_of(kType);
  const bool has_second = column + 1 < y.size[1], both = kInPairs && has_second;
  if (column >= y.size[1]) return;
  if constexpr (kType == DType::kF32) {
    if (both)
      *reinterpret_cast<uint2*>(to) = {__float_as_uint(first), __float_as_uint(second)};
    else
      *reinterpret_cast<float*>(to) = first;
    if (!kInPairs && has_second) *reinterpret_cast<float*>(to + 4) = second;
  } else {
    const u32 pair = pack_pair<kType>(first, second);
    if (both)
      *reinterpret_cast<u32*>(to) = pair;
    else
      *reinterpret_cast<u16*>(to) = u16(pair);
    if (!kInPairs && has_second) *reinterpret_cast<u16*>(to + 2) = u16(pair >> 16);
  }
}

}  // namespace heddle::device
