// Rows [B, T, H] of heads whose elements a few neighbouring lanes have, each eight of them.
#pragma once

#include "heddle/kit/kernel.cuh"
#include "heddle/kit/rows/vec8.cuh"

namespace heddle::device::row_lanes {

template <i32 kLanes>
struct RowLanes {
  static_assert(kLanes <= 32 && (kLanes & (kLanes - 1)) == 0);
  i32 b, t, h;

  static i32 lane() { return i32(threadIdx.x) % kLanes; }
  template <DType kType>
  u8* row(const Tensor& tensor) const {
    return tensor.data +
           (b * tensor.stride[0] + t * tensor.stride[1] + h * tensor.stride[2]) * size_of(kType);
  }
  // Element [b, position, h] of an f32 tensor [B, T, H].
  float& at(const Tensor& tensor, i32 position) const {
    return reinterpret_cast<float*>(
        tensor.data)[b * tensor.stride[0] + position * tensor.stride[1] + h * tensor.stride[2]];
  }
  float& at(const Tensor& tensor) const { return at(tensor, t); }
  // The sum of what the lanes of a row have.
  static float sum(float mine) {
#pragma unroll
    for (i32 bits = kLanes / 2; bits > 0; bits /= 2) mine += __shfl_xor_sync(~0u, mine, bits);
    return mine;
  }
};

template <DType kLeft, DType kRight>
inline float dot(const Vec8<kLeft>& left, const Vec8<kRight>& right) {
  float sum = 0;
#pragma unroll
  for (i32 i = 0; i < 8; ++i) sum = fma(left.get(i), right.get(i), sum);
  return sum;
}
// A word whose first element is `first` and whose others are 0.
template <DType kType>
inline Vec8<kType> alone(float first) {
  return Vec8<kType>::of([&](i32 i) { return i == 0 ? first : 0.0f; });
}

// Row `line` of all, in the order of memory.
template <i32 kLanes>
inline RowLanes<kLanes> row_of_line(const Tensor& rows, i64 line) {
  const i32 heads = rows.size[2], positions = rows.size[1];
  return {i32(line / heads / positions), i32(line / heads % positions), i32(line % heads)};
}

}  // namespace heddle::device::row_lanes
