// y = (scales of a * a) (scales of b * b), of fp8. There is one scale for all of a, one for each row, or one for each row and 128 k;
// one for all of b, for each column, or for 128 k and one or 128 columns. Sums are in f32.
#pragma once

#include "heddle/ir/matrices.h"
#include "heddle/ops/matmul/matmul.h"

namespace heddle {

constexpr i32 kScaleBlock = 128;

struct ScaledMm {
  Matrices a;              // [M, K]
  Matrices b;              // [K, N]
  Matrices scale_a;        // f32 [1, 1], [M, 1], or [M, K / 128], rounded up
  Matrices scale_b;        // f32 [1, 1], [1, N], [K / 128, N], or [K / 128, N / 128], rounded up
  Tensor y;                // [M, N]
  bool fast_sums = false;  // sums may have the 14 bits of fraction that products of fp8 add with

  i32 batches() const { return 1; }
  i32 rows() const { return y.size[0]; }
  i32 columns() const { return y.size[1]; }
  i32 terms() const { return a.cols(); }
  const Tensor& result(i32) const { return y; }
  // Parts of k that have scales of their own.
  i32 groups() const { return scale_a.cols() > scale_b.rows() ? scale_a.cols() : scale_b.rows(); }

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    visit_matrices(v, "a", "a.transposed", s.a, "M, K", "f8e4m3 | f8e5m2");
    visit_matrices(v, "b", "b.transposed", s.b, "K, N", "f8e4m3 | f8e5m2");
    visit_matrices(v, "scale_a", "scale_a.transposed", s.scale_a, "., .", "f32");
    visit_matrices(v, "scale_b", "scale_b.transposed", s.scale_b, "., .", "f32");
    v.write("y", s.y, "M, N");
    v.attribute("fast_sums", s.fast_sums);
  }
};

}  // namespace heddle
