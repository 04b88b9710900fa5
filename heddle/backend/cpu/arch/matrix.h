// The matrix work of SIMD blocks: an operand in rows times panels of a packed weight.
#pragma once

#include "heddle/ir/weight.h"

namespace heddle {

// Matrix kernels take panels of 16 rows by all columns, with 16-bit elements in pairs along a row.
constexpr i32 kPanelRows = 16;
// Operands have room for a multiple of these rows, and zeros up to a multiple of these columns, so that kernels of whole tiles need
// no tails. No result depends on what lies in the rows that are added.
constexpr i32 kOperandRows = 16;
constexpr i32 kOperandCols = 32;

inline i32 round_up(i32 n, i32 unit) {
  return (n + unit - 1) / unit * unit;
}

// out[m, c] = sum over k of x[m, k] * w[first_panel * 16 + c, k], c < 16 * panels.
struct MatrixTask {
  const u8* x = nullptr;  // f32, or bf16 for the narrow kernel
  i64 x_stride = 0;       // bytes
  i32 rows = 0;
  const Weight* w = nullptr;
  i32 first_panel = 0, panels = 0;
  float* out = nullptr;  // the narrow kernel writes the padding rows too
  i64 out_stride = 0;    // floats; at least 16 * panels
  i32 run = 0;  // columns whose terms the wide kernel adds one by one; sums of runs are added then; 0: all

  const u8* panel(i32 p) const { return w->data.data + w->table[first_panel + p]; }
};

// Codes of a row lie byte by byte.
inline bool is_packed_for_kernels(const Weight& w) {
  if (w.panel_rows != kPanelRows || w.slices() != 1) return false;
  if (w.is_coded()) return w.data.dtype == DType::kBf16 && w.interleave * bits_of(w.coding.code) == 8;
  return w.interleave == (w.data.dtype == DType::kF32 ? 1 : 2);
}

using MatrixKernel = void (*)(const MatrixTask&);

// The kernels of weights in codes. `few` multiplies operands of at most `few_rows` rows by coded panels, and has the bits of the
// kernel of floats in its place; null: there is none. `decode` writes a panel's values as other kernels have them, in bf16.
struct CodedKernels {
  MatrixKernel few = nullptr;
  i32 few_rows = 0;
  void (*decode)(const Weight& coded, const u8* panel, u8* to) = nullptr;
};

// The matrix kernels of a SIMD level. `narrow` multiplies bf16 operands. Where there is one, the operand of a bf16 weight is
// stored as bf16, whatever its rows: a row has the same bits among any others.
struct MatrixKernels {
  MatrixKernel wide = nullptr;
  MatrixKernel narrow = nullptr;  // null: the level has none
  bool narrow_terms =
      false;  // it takes exact products too, of f32 in three terms of bf16, faster than `wide`
  CodedKernels coded = {};
};

// Elements [first, first + count) of data, as floats: (element - zero) * scale. Without scales, the elements alone.
struct CodeRun {
  DType dtype = DType::kF32;
  const u8* data = nullptr;
  i64 first = 0;
  i32 count = 0;
  const float *scales = nullptr, *zeros = nullptr;  // the first element's
  bool each_scale = false, each_zero = false;  // every element has its own; false: all have the first one's
  float* to = nullptr;
};
using CodeDecoder = void (*)(const CodeRun&);
// Returns the decoder for a target of Highway. All give the same bits.
CodeDecoder code_decoder(long long target);

// The kernels for operands as the products of bf16 weights have them: `operand` says which kernel of floats they stand for.
enum class CodedOperand : u8 { kWide, kNarrowPairs, kNarrowTiles };
CodedKernels coded_kernels(long long target, CodedOperand operand);

// Returns the kernel that multiplies f32 operands on a target of Highway.
MatrixKernel wide_kernel(long long target);

}  // namespace heddle
