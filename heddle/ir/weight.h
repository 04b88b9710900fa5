// A weight as an op argument holds it: a matrix in panels, of floats or of codes with scales. Host and device include it: no standard
// headers.
#pragma once

#include "heddle/base/code.h"
#include "heddle/ir/code_panel.h"
#include "heddle/ir/tensor.h"

namespace heddle {

// A weight matrix [rows, cols], packed into panels once, at load. A panel has `panel_rows` rows (zeros pad
// the last panel) and `panel_cols` columns (0: all of them). Panels are numbered along a row of panels first.
// Element (r, k) of a panel, with k counted from its first column, lies at ((k / interleave) * panel_rows +
// r) * interleave + k % interleave, with columns padded to a multiple of `interleave`. interleave = 1 makes
// the rows of one column adjacent, 2 makes pairs for bf16 dot products, and a value >= cols stores rows
// whole. `order` says which source row a packed row holds (engine/pack applies it): it makes the partners of
// a rotation, or gate and up rows, adjacent. Several matrices of one shape (experts, heads) may follow one
// another, each in its own panels.
// A weight may be stored in a code (base/code.h): then `interleave` counts codes, a panel has all columns, and after its codes come
// f32 scales [groups, panel_rows]. Words of 16 bytes of two rows in turn lie as a GPU's ring streams them (ir/code_panel.h).
struct Weight {
  Tensor data;                 // [rows, cols], logical shape of one matrix; dtype of the values
  const u64* table = nullptr;  // bound: byte offset of each panel from the beginning of its matrix
  u32 table_buffer = kNoBuffer;
  i32 panel_rows = 16;
  i32 interleave = 2;
  i32 panel_cols = 0;
  i32 matrices = 1;
  Coding coding;

  i32 rows() const { return data.size[0]; }
  constexpr i32 cols() const { return data.size[1]; }
  constexpr bool is_coded() const { return coding.code != Code::kNone; }
  // True if the panels can hold the code: whole rows, in words of whole bytes, and scales at whole floats.
  bool holds_coding() const {
    if (!is_coded()) return true;
    if (int(coding.code) >= kNumCodes || panel_cols != 0) return false;
    const i64 bits = i64(interleave) * bits_of(coding.code);
    return bits % 8 == 0 && bits * panel_rows % 32 == 0;
  }
  i32 slice_cols() const { return panel_cols > 0 ? panel_cols : cols(); }
  i32 slices() const { return panel_cols > 0 ? (cols() + panel_cols - 1) / panel_cols : 1; }
  i32 panels() const { return (rows() + panel_rows - 1) / panel_rows * slices(); }
  i32 padded_cols() const { return (slice_cols() + interleave - 1) / interleave * interleave; }
  // Columns that share a scale, and how many such groups a row has.
  i32 group_cols() const { return coding.group > 0 ? coding.group : cols(); }
  i32 groups() const { return is_coded() ? (cols() + group_cols() - 1) / group_cols() : 0; }
  // True if the panels are streamed as codes.
  constexpr bool is_streamed() const {
    return is_coded() && data.dtype == DType::kBf16 && panel_rows == 2 && panel_cols == 0 &&
           interleave * bits_of(coding.code) == 8 * CodePanel::kWordBytes && CodePanel::takes(coding.group);
  }
  constexpr CodePanel code_panel() const { return {cols(), bits_of(coding.code), coding.group}; }
  // Bytes of a panel's elements, which its scales follow.
  i64 element_bytes() const {
    const i64 elements = i64(panel_rows) * padded_cols();
    return is_coded() ? elements * bits_of(coding.code) / 8 : elements * size_of(data.dtype);
  }
  i64 scale_bytes() const { return i64(panel_rows) * groups() * i64(sizeof(float)); }
  i64 panel_bytes() const {
    if (is_streamed()) return code_panel().bytes();
    return is_coded() ? element_bytes() + scale_bytes() : element_bytes();
  }
  i64 matrix_bytes() const { return panel_bytes() * panels(); }
  i64 bytes() const { return matrix_bytes() * matrices; }
  Weight matrix(i32 i) const {
    Weight one = *this;
    one.matrices = 1;
    one.data.data += i * matrix_bytes();
    return one;
  }
  // Offset of an element inside its panel, in elements.
  i64 place(i32 r, i32 k) const {
    if (is_streamed()) return code_panel().place(r, k);
    return (i64(k / interleave) * panel_rows + r) * interleave + k % interleave;
  }
  // Offset of its scale inside the panel, in bytes.
  i64 scale_place(i32 r, i32 k) const {
    if (is_streamed()) return code_panel().scale_place(r, k);
    return element_bytes() + (i64(k / group_cols()) * panel_rows + r) * i64(sizeof(float));
  }
};

}  // namespace heddle
