// Says how a product is computed: the one place that looks at layout, dtype and rows. Host and device include it: no
// standard headers.
#pragma once

#include "heddle/ir/weight.h"

namespace heddle {

enum class ProductPath : u8 {
  kRing,          // one to eight rows times panels that the ring brings (device/matvec.cuh)
  kSlabs,         // many rows times panels in slabs, on tensor cores (device/gemm.cuh)
  kElements,      // rows times panels of any other shape: one sum for each element, from memory
  kTensorCores,   // two matrices of 16-bit floats or narrower (device/matmul.cuh)
  kMultiplyAdds,  // two matrices, one of which is f32 (device/matmul.cuh)
};

// The abilities of a kernel.
struct ProductKernel {
  i32 ring_rows = 0;       // the most rows of a tile that the ring serves; 0: there is no ring
  bool has_slabs = false;  // compiled for many rows
};

// The rows that a weight multiplies.
struct ProductRows {
  DType dtype = DType::kF32;
  i32 rows = 0, cols = 0;
  i64 stride = 0;           // bytes from row to row
  bool is_aligned = false;  // begins at a 16-byte word
};

// Panels of floats as the ring and the slabs have them: 16-byte words of two rows in turn.
constexpr bool has_paired_panels(const Weight& w) {
  return !w.is_coded() && w.panel_rows == 2 && w.slices() == 1 && w.interleave * size_of(w.data.dtype) == 16;
}

// The ring has these, and panels of codes.
constexpr bool has_ring_panels(const Weight& w) {
  return has_paired_panels(w) || w.is_streamed();
}

constexpr ProductPath product_path(const Weight& w, const ProductRows& x, const ProductKernel& kernel) {
  if (!has_ring_panels(w)) return ProductPath::kElements;
  if (kernel.ring_rows > 0 && x.rows <= kernel.ring_rows) return ProductPath::kRing;
  const bool in_words = x.is_aligned && x.cols % 8 == 0 && x.stride % 16 == 0;
  const bool narrow = size_of(x.dtype) == 2 && x.dtype == w.data.dtype;
  return kernel.has_slabs && narrow && in_words ? ProductPath::kSlabs : ProductPath::kElements;
}

// The type that elements of both matrices are multiplied as: f32 if one of them is, or if one is f16 and the other
// bf16; else f16 if one of them is; else bf16, which holds every code of 8 bits or fewer.
constexpr DType product_dtype(const Matrix& a, const Matrix& b) {
  const DType left = a.data.dtype, right = b.data.dtype;
  const auto either = [&](DType type) { return left == type || right == type; };
  if (either(DType::kF32) || (either(DType::kF16) && either(DType::kBf16))) return DType::kF32;
  return either(DType::kF16) ? DType::kF16 : DType::kBf16;
}

constexpr ProductPath product_path(const Matrix& a, const Matrix& b) {
  return product_dtype(a, b) == DType::kF32 ? ProductPath::kMultiplyAdds : ProductPath::kTensorCores;
}

// A tile of a product of two matrices goes through memory on chip in slabs of 64 k: 64 or 128 rows of both sides, of two bytes
// for each k. At most so many slabs are there at once.
constexpr i32 kMostSlabs = 4, kSlabSide = 64, kSlabK = 64;

// The most bytes of a tile's sums: rows of pairs of floats, and some more so that they begin in different banks.
constexpr i64 fragment_bytes(i64 rows, i64 cols) {
  constexpr i64 kPadding = 36;
  return rows * (cols * 4 + kPadding);
}

// The most bytes on chip that a tile makes use of: the slabs, which its sums overwrite in the end.
constexpr i64 product_scratch(i32 rows, i32 cols) {
  const i64 side = rows > kSlabSide && cols > kSlabSide ? 2 * kSlabSide : kSlabSide;
  const i64 slabs = kMostSlabs * 2 * side * kSlabK * 2, sums = fragment_bytes(rows, cols), alignment = 1024;
  return (slabs > sums ? slabs : sums) + alignment;
}

}  // namespace heddle
