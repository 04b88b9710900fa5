// flash_attention_delta as a whole kernel: a few neighbouring lanes have a head of a row, each eight elements.
#pragma once

#include "heddle/kit/arch/numbers.cuh"
#include "heddle/kit/kernel.cuh"
#include "heddle/ops/flash_attention/flash_attention_delta.h"

namespace heddle::device::flash_attention_delta {

struct KernelConfig {
  static constexpr i32 kKernel = 1;
  static constexpr i32 kLanes = 16;  // a head has: a power of 2, so that they exchange their sums
};

template <class Config>
struct Kernel {
  static constexpr FlashAttentionDelta kTypes = Config::types();
  static constexpr u32 kThreads = 256;
  static constexpr i32 kLanes = Config::kLanes;

  static float sum_of(u32 y, u32 dy) {
    if constexpr (kTypes.y.dtype == DType::kBf16)
      return __uint_as_float(y << 16) * __uint_as_float(dy << 16) +
             __uint_as_float(y & 0xffff0000u) * __uint_as_float(dy & 0xffff0000u);
    else
      return arch::from_f16(u16(y)) * arch::from_f16(u16(dy)) +
             arch::from_f16(u16(y >> 16)) * arch::from_f16(u16(dy >> 16));
  }
  static uint4 load(const Tensor& from, i32 batch, i32 row, i32 head, i32 at) {
    const i64 place = batch * from.stride[0] + row * from.stride[1] + head * from.stride[2] + at;
    return *reinterpret_cast<const uint4*>(from.data + place * 2);
  }

  static void run(const FlashAttentionDelta& a, const TensorMap*, u8*) {
    const i32 heads = a.y.size[2], rows = a.y.size[1], at = i32(threadIdx.x) % kLanes;
    const i64 line = i64(blockIdx.x) * (kThreads / kLanes) + threadIdx.x / kLanes;
    const i64 all = i64(a.y.size[0]) * rows * heads;
    const bool exists = line < all;
    const i32 head = i32(line % heads), row = i32(line / heads % rows), batch = i32(line / heads / rows);
    float sum = 0;
    if (exists && at * 8 < a.y.size[3]) {
      const uint4 y = load(a.y, batch, row, head, at * 8), dy = load(a.dy, batch, row, head, at * 8);
      sum = sum_of(y.x, dy.x) + sum_of(y.y, dy.y) + sum_of(y.z, dy.z) + sum_of(y.w, dy.w);
    }
#pragma unroll
    for (i32 s = kLanes / 2; s > 0; s /= 2) sum += __shfl_xor_sync(~0u, sum, s);
    if (!exists || at != 0) return;
    if constexpr (kTypes.dlse.rank > 0)
      sum -= reinterpret_cast<const float*>(
          a.dlse.data)[batch * a.dlse.stride[0] + head * a.dlse.stride[1] + row];
    reinterpret_cast<float*>(a.delta.data)[batch * a.delta.stride[0] + head * a.delta.stride[1] + row] = sum;
  }
};

}  // namespace heddle::device::flash_attention_delta
