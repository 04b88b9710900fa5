// The first launch of both gradients of power attention.
#pragma once

#include "heddle/kit/kernel.cuh"
#include "heddle/kit/move/store_tile.cuh"

namespace heddle::device::power_attention_sums {

// A warp has a row: the gradient of its sums, as row_gradients of the tile body makes it.
template <class Config>
struct Rows {
  static constexpr u32 kThreads = 256;
  static constexpr DType kType = Config::types().y.dtype;

  template <class Args>
  static void run(const Args& a, const TensorMap*, u8* workspace) {
    const i32 heads = a.y.size[2], length = a.y.size[1];
    const i64 row = i64(blockIdx.x) * (kThreads / 32) + threadIdx.x / 32;
    if (row >= i64(a.y.size[0]) * length * heads) return;
    const i64 h = row % heads, t = row / heads % length, b = row / heads / length;
    const auto at = [&](const Tensor& tensor) {
      return b * tensor.stride[0] + t * tensor.stride[1] + h * tensor.stride[2];
    };
    const auto element = [&](const Tensor& tensor) {
      return reinterpret_cast<const float*>(tensor.data)[b * tensor.stride[0] + t * tensor.stride[1] + h];
    };
    float2 of{1, element(a.dtotal)};
    if (a.normalise) {
      float sum = 0;
      const auto* const y = reinterpret_cast<const u32*>(a.y.data + at(a.y) * size_of(kType));
      const auto* const dy = reinterpret_cast<const u32*>(a.dy.data + at(a.dy) * size_of(kType));
      for (i32 e = i32(lane()); e < a.y.size[3] / 2; e += 32) {
        const float2 one = unpack_pair<kType>(y[e]), other = unpack_pair<kType>(dy[e]);
        sum += one.x * other.x + one.y * other.y;
      }
#pragma unroll
      for (u32 apart = 16; apart > 0; apart /= 2) sum += __shfl_xor_sync(~0u, sum, apart);
      of.x = 1.0f / (element(a.total) + a.eps), of.y -= sum * of.x;
    }
    if (lane() == 0) reinterpret_cast<float2*>(workspace)[row] = of;
  }
};

}  // namespace heddle::device::power_attention_sums
