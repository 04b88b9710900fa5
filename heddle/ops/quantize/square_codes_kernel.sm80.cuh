// A square of 128 x 128 elements in the registers of a CTA, and its codes in both layouts: a thread has eight columns of eight rows,
// 16 rows apart. The transposed codes are put together on chip.
#pragma once

#include "heddle/kit/arch/memory.cuh"
#include "heddle/kit/arch/numbers.cuh"
#include "heddle/kit/kernel.cuh"
#include "heddle/kit/rows/vec8.cuh"
#include "heddle/ops/quantize/code_kind.h"

namespace heddle::device::square_codes {

#include "heddle/ops/quantize/encode.cuh"
#include "heddle/ops/quantize/encode_kernel.cuh"

constexpr i32 kSide = kCodeBlock, kPasses = 8, kLines = 16;

template <DType kIn, i32 kCode>
struct SquareCodes {
  static constexpr u32 kThreads = 256;

  Vec8<kIn> values[kPasses];
  i32 rows, columns, square, across, line, word, at;  // at: the number of this thread's eight in its rows

  explicit SquareCodes(const Tensor& x)
      : rows(x.size[0]),
        columns(x.size[1]),
        line(i32(threadIdx.x) / kLines),
        word(i32(threadIdx.x) % kLines) {
    const i32 wide = (columns + kSide - 1) / kSide;
    square = i32(blockIdx.x) / wide, across = i32(blockIdx.x) % wide, at = across * kLines + word;
#pragma unroll
    for (i32 n = 0; n < kPasses; ++n)
      if (has(n)) values[n].load(row_of(x, row(n)), at);
  }
  i32 row(i32 n) const { return square * kSide + n * kLines + line; }
  i32 column(i32 i) const { return 8 * at + i; }
  bool has(i32 n) const { return row(n) < rows && at < columns / 8; }

  void store_row(const Tensor& codes, i32 n, float inverse) const {
    store_codes<kCode>(row_of(codes, row(n)), at, inverse, [&](i32 i) { return values[n].get(i); });
  }

  // Word of 16 codes `word` of a line of transposed codes; words are permuted so that eight lanes meet no bank twice.
  static constexpr i32 place(i32 column, i32 word) { return column * kSide + (word ^ column / 8 % 8) * 16; }

  // Writes column i of this thread's to its place in turned [kSide * kSide].
  void turn(u8* turned, i32 i, float inverse) const {
    const i32 line_of_codes = 8 * word + i;
#pragma unroll
    for (i32 n = 0; n < kPasses; n += 2) {
      const u32 codes = two_codes<kCode>(values[n].get(i) * inverse, values[n + 1].get(i) * inverse);
      turned[place(line_of_codes, n) + line] = u8(codes);
      turned[place(line_of_codes, n + 1) + line] = u8(codes >> 8);
    }
  }
  void store_turned(const u8* turned, const Tensor& transposed) const {
#pragma unroll
    for (i32 n = 0; n < kSide * kSide / 16 / i32(kThreads); ++n) {
      const i32 number = i32(threadIdx.x) + n * i32(kThreads), line_of_codes = number / 8, part = number % 8;
      const i32 first = square * kSide + 16 * part;
      if (across * kSide + line_of_codes < columns && first < rows)
        arch::store_once(row_of(transposed, across * kSide + line_of_codes) + first,
                         *reinterpret_cast<const uint4*>(turned + place(line_of_codes, part)));
    }
  }
};

}  // namespace heddle::device::square_codes
