// Codes of squares of 128 x 128 in both layouts, from one read: a thread has eight columns of eight rows, 16 rows apart. The
// transposed codes are put together on chip.
#pragma once

#include "heddle/kit/arch/memory.cuh"
#include "heddle/kit/arch/numbers.cuh"
#include "heddle/kit/kernel.cuh"
#include "heddle/kit/rows/vec8.cuh"
#include "heddle/ops/quantize/quantize_both.h"

namespace heddle::device::quantize_both {

#include "heddle/ops/quantize/encode.cuh"
#include "heddle/ops/quantize/encode_kernel.cuh"

struct KernelConfig {
  static constexpr i32 kRows = 128, kColumns = 128, kKind = 0;  // kKind: CodeKind
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = 256;
  static constexpr i32 kSide = kCodeBlock, kPasses = 8, kLines = 16, kCode = Config::kKind;
  static constexpr DType kIn = Config::types().x.dtype;

  // Word of 16 codes `word` of a line of transposed codes; words are permuted so that eight lanes meet no bank twice.
  static constexpr i32 place(i32 column, i32 word) { return column * kSide + (word ^ column / 8 % 8) * 16; }

  static void run(const QuantizeBoth& a, const TensorMap*, u8*) {
    __shared__ __align__(16) u8 turned[kSide * kSide];
    __shared__ float tops[kLines][kSide];
    const i32 rows = a.x.size[0], columns = a.x.size[1], wide = (columns + kSide - 1) / kSide;
    const i32 square = i32(blockIdx.x) / wide, across = i32(blockIdx.x) % wide;
    const i32 line = i32(threadIdx.x) / kLines, word = i32(threadIdx.x) % kLines, at = across * kLines + word;
    Vec8<kIn> values[kPasses];
    float most[8] = {};
#pragma unroll
    for (i32 n = 0; n < kPasses; ++n) {
      const i32 row = square * kSide + n * kLines + line;
      if (row < rows && at < columns / 8) values[n].load(row_of(a.x, row), at);
    }
#pragma unroll
    for (i32 n = 0; n < kPasses; ++n) {
      const i32 row = square * kSide + n * kLines + line;
      float top = 0;
#pragma unroll
      for (i32 i = 0; i < 8; ++i) {
        const float size = fabsf(values[n].get(i));
        top = arch::max_or_nan(top, size), most[i] = arch::max_or_nan(most[i], size);
      }
#pragma unroll
      for (i32 bits = 8; bits > 0; bits /= 2) top = arch::max_or_nan(top, __shfl_xor_sync(~0u, top, bits));
      if (row >= rows || at >= columns / 8) continue;
      const float scale = scale_for(top, kCode);
      if (word == 0) reinterpret_cast<float*>(row_of(a.scales, row))[across] = scale;
      store_codes<kCode>(row_of(a.codes, row), at, 1 / scale, [&](i32 i) { return values[n].get(i); });
    }
#pragma unroll
    for (i32 i = 0; i < 8; ++i) tops[line][8 * word + i] = most[i];
    __syncthreads();
#pragma unroll
    for (i32 i = 0; i < 8; ++i) {
      const i32 column = 8 * word + i;
      float top = 0;
#pragma unroll
      for (i32 l = 0; l < kLines; ++l) top = arch::max_or_nan(top, tops[l][column]);
      const float scale = scale_for(top, kCode);
      if (line == 0 && 8 * at + i < columns)
        reinterpret_cast<float*>(row_of(a.transposed_scales, 8 * at + i))[square] = scale;
      const float inverse = 1 / scale;
#pragma unroll
      for (i32 n = 0; n < kPasses; n += 2) {
        const u32 codes = two_codes<kCode>(values[n].get(i) * inverse, values[n + 1].get(i) * inverse);
        turned[place(column, n) + line] = u8(codes), turned[place(column, n + 1) + line] = u8(codes >> 8);
      }
    }
    __syncthreads();
#pragma unroll
    for (i32 n = 0; n < kSide * kSide / 16 / i32(kThreads); ++n) {
      const i32 number = i32(threadIdx.x) + n * i32(kThreads), column = number / 8, part = number % 8;
      const i32 row = square * kSide + 16 * part;
      if (across * kSide + column < columns && row < rows)
        arch::store_once(row_of(a.transposed, across * kSide + column) + row,
                         *reinterpret_cast<const uint4*>(turned + place(column, part)));
    }
  }
};

}  // namespace heddle::device::quantize_both
