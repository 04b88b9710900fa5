// state_scan as a whole kernel: a thread has 16 bytes of a row of a state, and goes with them through all chunks. It asks for kAhead
// chunks before it adds the first.
#pragma once

#include "heddle/kit/kernel.cuh"
#include "heddle/ops/sympow/state_scan.h"
#include "heddle/ops/sympow/state_words_kernel.sm80.cuh"

namespace heddle::device::state_scan {

using namespace state_words;

struct KernelConfig {
  static constexpr i32 kAhead = 8;  // chunks
};

template <class Config>
struct Kernel {
  static constexpr DType kType = Config::types().u.dtype;
  static constexpr u32 kThreads = 256;
  static constexpr i32 kWord = 16 / size_of(kType);  // elements of 16 bytes

  static void run(const StateScan& a, const TensorMap*, u8*) {
    const i32 width = a.width(), words = a.u.size[3] / kWord, vectors = width * words;
    const i32 ctas = (vectors + i32(kThreads) - 1) / i32(kThreads), head = i32(blockIdx.x) / ctas;
    const i32 b = head / a.u.size[1], h = head % a.u.size[1];
    const i32 vector = i32(blockIdx.x) % ctas * i32(kThreads) + i32(threadIdx.x);
    if (vector >= vectors) return;
    const i32 row = vector / words, column = vector % words * kWord;
    const i32 positions = a.l.exists() ? a.l.size[1] : 1;
    const ChunkTiles tiles(positions, a.chunk);
    float sum[kWord];
#pragma unroll
    for (i32 i = 0; i < kWord; ++i)
      sum[i] = a.s0.exists() ? load_element(a.s0.dtype, at(a.s0, b, h, row, column, a.s0.dtype), i) : 0.0f;
#pragma unroll 1
    for (i32 g = 0; g < a.chunks; g += Config::kAhead) {
      uint4 added[Config::kAhead];
      float decay[Config::kAhead];
#pragma unroll
      for (i32 i = 0; i < Config::kAhead; ++i) {
        const i32 chunk = min(g + i, a.chunks - 1);
        added[i] = *reinterpret_cast<const uint4*>(at(a.u, b, h, i64(chunk) * width + row, column, kType));
        decay[i] = decay_of(a, tiles, b, h, chunk);
      }
#pragma unroll
      for (i32 i = 0; i < Config::kAhead; ++i) {
        if (g + i >= a.chunks) break;
        *reinterpret_cast<uint4*>(at(a.s, b, h, i64(g + i) * width + row, column, kType)) = pack<kType>(sum);
#pragma unroll
        for (i32 j = 0; j < kWord; ++j) sum[j] = sum[j] * decay[i] + value<kType>(added[i], j);
      }
    }
    float4* const last = reinterpret_cast<float4*>(at(a.last, b, h, row, column, DType::kF32));
    last[0] = {sum[0], sum[1], sum[2], sum[3]}, last[1] = {sum[4], sum[5], sum[6], sum[7]};
  }
};

}  // namespace heddle::device::state_scan
