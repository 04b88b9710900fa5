// Many rows times panels on tensor cores: slabs of both in shared memory, filled by asynchronous copies some steps
// ahead, multiplied as 16 x 8 x 16 blocks with FP32 sums. Rows of a slab are 128 bytes; their 16-byte words are
// permuted, so that eight rows of one column of words fall into different banks.
#pragma once

#include "heddle/backend/cuda/device/consumers.cuh"
#include "heddle/backend/cuda/device/view.cuh"

namespace heddle::device {

constexpr i32 kSlab = 64;       // k of a slab
constexpr i32 kSlabWords = 8;   // 16-byte words of one row of it
constexpr i32 kGemmRows = 256;  // rows of a fragment at most
constexpr i32 kGemmCols = 64;   // columns at a time
constexpr i32 kStageBytes = (kGemmRows + kGemmCols) * kSlab * 2;
constexpr i32 kMostStages = 4;

// Whether x and w can be multiplied this way: 16-bit, in panels as the ring has them, rows in whole words.
inline bool fits_gemm(const Matrix& x, const Weight& w) {
  return x.dtype == w.data.dtype && size_of(x.dtype) == 2 && w.panel_rows == 2 && w.interleave == 8 &&
         w.slices() == 1 && x.cols % 8 == 0 && x.stride % 16 == 0 && x.rows <= kGemmRows;
}

inline i32 word_place(i32 row, i32 word) {
  return (row * kSlabWords + (word ^ (row & (kSlabWords - 1)))) * 16;
}

class Gemm {
 public:
  Gemm(const Matrix& x, const Weight& w, u8* stages, i32 count)
      : x_(x), w_(w), stages_(stages), count_(count), steps_((x.cols + kSlab - 1) / kSlab) {}

  // fragment[:, from .. from + cols) = x w^T, cols at most kGemmCols.
  template <bool kBf16>
  void multiply(const Matrix& fragment, i32 from, i32 cols) {
    const i32 warp = i32(arch::thread() / 32);
    i32 by_rows = 1;  // warps that share the rows
    while (by_rows * 16 < x_.rows) by_rows *= 2;
    const i32 by_cols = kWarps / by_rows, row = warp % by_rows * 16, block = warp / by_rows;
    float sums[kGemmCols / 8][4] = {};
    for (i32 s = 0; s < count_ - 1; ++s) fill(s, fragment.n0 + from, cols);
    for (i32 s = 0; s < steps_; ++s) {
      fill(s + count_ - 1, fragment.n0 + from, cols);
      arch::wait_copies(count_ - 1);
      sync_consumers();
      const u8* stage = stages_ + s % count_ * kStageBytes;
      if (row < x_.rows)
#pragma unroll
        for (i32 k = 0; k < kSlabWords; k += 2)
          multiply_step<kBf16>(stage, k, row, block, by_cols, cols, sums);
      sync_consumers();
    }
    arch::wait_copies(0);
    store(fragment, from, cols, row, block, by_cols, sums);
  }

 private:
  // Begins the copies of slab s: rows of x, then rows of w. Always one group of copies, empty past the end.
  void fill(i32 s, i32 first, i32 cols) {
    if (s < steps_) {
      u8* stage = stages_ + s % count_ * kStageBytes;
      const i32 words = x_.cols / 8 - s * kSlabWords, padded = w_.padded_cols() / 8 - s * kSlabWords;
      for (i32 i = i32(arch::thread()); i < x_.rows * kSlabWords; i += kConsumers) {
        const i32 row = i / kSlabWords, word = i % kSlabWords;
        const u8* from = x_.data + row * x_.stride + (i64(s) * kSlabWords + word) * 16;
        arch::copy_word(stage + word_place(row, word), word < words ? from : x_.data, word < words);
      }
      stage += kGemmRows * kSlab * 2;
      const i32 rows = (cols + 7) / 8 * 8;
      for (i32 i = i32(arch::thread()); i < rows * kSlabWords; i += kConsumers) {
        const i32 row = i / 2 / kSlabWords * 2 + i % 2, word = i / 2 % kSlabWords;  // as they lie in memory
        const i32 r = first + row;
        const bool there = row < cols && word < padded;
        const u8* from =
            w_.data.data + r / 2 * w_.panel_bytes() + ((i64(s) * kSlabWords + word) * 2 + r % 2) * 16;
        arch::copy_word(stage + word_place(row, word), there ? from : w_.data.data, there);
      }
    }
    arch::commit_copies();
  }

  // Words k and k + 1 of a slab: 16 x 8 x 16 blocks of this warp.
  template <bool kBf16>
  static void multiply_step(const u8* stage, i32 k, i32 row, i32 block, i32 by_cols, i32 cols,
                            float (&sums)[kGemmCols / 8][4]) {
    const i32 lane = i32(arch::thread() % 32);
    u32 a[4];
    arch::load_matrices(a, stage + word_place(row + lane % 16, k + lane / 16));
    const u8* weights = stage + kGemmRows * kSlab * 2;
#pragma unroll
    for (i32 j = 0; j < kGemmCols / 8; ++j) {
      const i32 n = (block + j * by_cols) * 8;
      if (n >= cols) break;
      u32 b[2];
      arch::load_matrices(b, weights + word_place(n + lane % 8, k + lane / 8 % 2));
      arch::multiply_add<kBf16>(sums[j], a, b);
    }
  }

  void store(const Matrix& fragment, i32 from, i32 cols, i32 row, i32 block, i32 by_cols,
             const float (&sums)[kGemmCols / 8][4]) const {
    const i32 lane = i32(arch::thread() % 32);
#pragma unroll
    for (i32 j = 0; j < kGemmCols / 8; ++j)
#pragma unroll
      for (i32 i = 0; i < 4; ++i) {
        const i32 m = row + lane / 4 + i / 2 * 8, n = (block + j * by_cols) * 8 + lane % 4 * 2 + i % 2;
        if (m < x_.rows && n < cols) fragment.row(m).store(Index{from + n}, sums[j][i]);
      }
  }

  const Matrix& x_;
  const Weight& w_;
  u8* stages_;
  i32 count_, steps_;
};

// Not inlined: a program has it once.
template <bool kBf16>
__noinline__ void multiply_slabs(const Matrix& fragment, const Matrix& x, const Weight& w, u8* stages,
                                 i32 count) {
  Gemm gemm(x, w, stages, count);
  for (i32 from = 0; from < fragment.cols; from += kGemmCols)
    gemm.multiply<kBf16>(fragment, from, min(kGemmCols, fragment.cols - from));
}

}  // namespace heddle::device
