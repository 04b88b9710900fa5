// state_scan_backward as a whole kernel: a CTA has 64 rows of a state, a thread up to kMost words of 16 bytes of them, whose gradients
// stay in registers while it goes through the chunks from the last one on. What belongs to the decay of a chunk is added up by warps,
// then by the CTA, in one order.
#pragma once

#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/kernel.cuh"
#include "heddle/ops/sympow/state_scan_backward.h"
#include "heddle/ops/sympow/state_words_kernel.sm80.cuh"

namespace heddle::device::state_scan_backward {

using namespace state_words;

struct KernelConfig {
  static constexpr i32 kWords = 3;  // a thread has so many
};

template <class Config>
struct Kernel {
  static constexpr DType kType = Config::types().s.dtype;
  static constexpr u32 kThreads = 256;
  static constexpr i32 kWord = 8, kWords = Config::kWords, kRows = 64, kWarps = i32(kThreads) / 32;

  static void run(const StateScanBackward& a, const TensorMap*, u8*) {
    float* const sums = reinterpret_cast<float*>(arch::dynamic_shared());  // [2, kWarps]
    const i32 width = a.width(), words = a.s.size[3] / kWord, parts = (width + kRows - 1) / kRows;
    const i32 head = i32(blockIdx.x) / parts, part = i32(blockIdx.x) % parts;
    const i32 b = head / a.s.size[1], h = head % a.s.size[1], first = part * kRows;
    const i32 count = min(kRows, width - first) * words;
    float given[kWords][kWord];
    i32 row[kWords], column[kWords];
    bool there[kWords];
#pragma unroll
    for (i32 n = 0; n < kWords; ++n) {
      const i32 vector = i32(threadIdx.x) + n * i32(kThreads);
      there[n] = vector < count;
      row[n] = first + (there[n] ? vector / words : 0), column[n] = there[n] ? vector % words * kWord : 0;
      const float* const from =
          reinterpret_cast<const float*>(at(a.dlast, b, h, row[n], column[n], DType::kF32));
#pragma unroll
      for (i32 i = 0; i < kWord; ++i) given[n][i] = there[n] ? from[i] : 0.0f;
    }
    const ChunkTiles tiles(a.l.exists() ? a.l.size[1] : 1, a.chunk);
#pragma unroll 1
    for (i32 g = a.chunks - 1; g >= 0; --g) {
      uint4 s[kWords], ds[kWords];
#pragma unroll
      for (i32 n = 0; n < kWords; ++n) {
        const i64 at_row = i64(g) * width + row[n];
        s[n] = *reinterpret_cast<const uint4*>(at(a.s, b, h, at_row, column[n], kType));
        ds[n] = *reinterpret_cast<const uint4*>(at(a.ds, b, h, at_row, column[n], kType));
      }
      const float decay = decay_of(a, tiles, b, h, g);
      float sum = 0;
#pragma unroll
      for (i32 n = 0; n < kWords; ++n) {
        if (!there[n]) continue;
        *reinterpret_cast<uint4*>(at(a.du, b, h, i64(g) * width + row[n], column[n], kType)) =
            pack<kType>(given[n]);
#pragma unroll
        for (i32 i = 0; i < kWord; ++i) {
          sum += value<kType>(s[n], i) * given[n][i];
          given[n][i] = value<kType>(ds[n], i) + decay * given[n][i];
        }
      }
#pragma unroll
      for (u32 apart = 16; apart > 0; apart /= 2) sum += __shfl_xor_sync(~0u, sum, apart);
      if (lane() == 0) sums[g % 2 * kWarps + i32(threadIdx.x / 32)] = sum;
      __syncthreads();
      if (threadIdx.x == 0) {
        float all = 0;
        for (i32 w = 0; w < kWarps; ++w) all += sums[g % 2 * kWarps + w];
        reinterpret_cast<float*>(at(a.part, b, h, g, part, DType::kF32))[0] = all;
      }
    }
#pragma unroll
    for (i32 n = 0; n < kWords; ++n) {
      float* const to = reinterpret_cast<float*>(at(a.ds0, b, h, row[n], column[n], DType::kF32));
#pragma unroll
      for (i32 i = 0; i < kWord; ++i)
        if (there[n]) to[i] = given[n][i];
    }
  }
};

}  // namespace heddle::device::state_scan_backward
