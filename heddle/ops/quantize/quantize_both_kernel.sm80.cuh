// Codes of squares of 128 x 128 in both layouts, from one read: a thread has eight columns of eight rows, 16 rows apart. The
// transposed codes are put together on chip.
namespace quantize_both {

#include "heddle/ops/quantize/encode.cuh"

struct KernelConfig {
  static constexpr i32 kRows = 128, kColumns = 128, kKind = 0;  // kKind: CodeKind
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = 256;
  static constexpr i32 kSide = kCodeBlock, kPasses = 8, kLines = 16, kCode = Config::kKind;
  static constexpr i32 kPitch = kSide + 16;  // bytes from one line of transposed codes to the next
  static constexpr DType kIn = Config::types().x.dtype;

  static void run(const QuantizeBoth& a, const TensorMap*, u8*) {
    __shared__ __align__(16) u8 turned[kSide * kPitch];
    __shared__ float tops[kLines][kSide];
    const i32 rows = a.x.size[0], columns = a.x.size[1], wide = (columns + kSide - 1) / kSide;
    const i32 square = i32(blockIdx.x) / wide, across = i32(blockIdx.x) % wide;
    const i32 line = i32(threadIdx.x) / kLines, word = i32(threadIdx.x) % kLines, at = across * kLines + word;
    Eight<kIn> values[kPasses];
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
        top = fmaxf(top, size), most[i] = fmaxf(most[i], size);
      }
#pragma unroll
      for (i32 bits = 8; bits > 0; bits /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, bits));
      if (row >= rows || at >= columns / 8) continue;
      const float scale = scale_for(top, kCode);
      if (word == 0) reinterpret_cast<float*>(row_of(a.scales, row))[across] = scale;
      const u32 low = u32(four_codes([&](i32 i) { return values[n].get(i); }, scale, kCode));
      const u32 high = u32(four_codes([&](i32 i) { return values[n].get(4 + i); }, scale, kCode));
      reinterpret_cast<uint2*>(row_of(a.codes, row))[at] = {low, high};
    }
#pragma unroll
    for (i32 i = 0; i < 8; ++i) tops[line][8 * word + i] = most[i];
    __syncthreads();
#pragma unroll
    for (i32 i = 0; i < 8; ++i) {
      const i32 column = 8 * word + i;
      float top = 0;
#pragma unroll
      for (i32 l = 0; l < kLines; ++l) top = fmaxf(top, tops[l][column]);
      const float scale = scale_for(top, kCode);
      if (line == 0 && 8 * at + i < columns)
        reinterpret_cast<float*>(row_of(a.transposed_scales, 8 * at + i))[square] = scale;
#pragma unroll
      for (i32 n = 0; n < kPasses; ++n)
        turned[column * kPitch + n * kLines + line] = u8(code_of(quotient(values[n].get(i), scale), kCode));
    }
    __syncthreads();
#pragma unroll
    for (i32 n = 0; n < kSide * kSide / 16 / i32(kThreads); ++n) {
      const i32 number = i32(threadIdx.x) + n * i32(kThreads), column = number / 8, part = number % 8 * 16;
      const i32 row = square * kSide + part;
      if (across * kSide + column < columns && row < rows)
        arch::store_once(row_of(a.transposed, across * kSide + column) + row,
                         *reinterpret_cast<const uint4*>(turned + column * kPitch + part));
    }
  }
};

}  // namespace quantize_both
