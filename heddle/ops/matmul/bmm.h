// y[i] = a[i] b[i]: products of pairs of matrices of floats, as they lie in memory. Sums are as those of matmul.
#pragma once

#include "heddle/ir/matrices.h"
#include "heddle/ops/matmul/batch_tile.h"
#include "heddle/ops/matmul/matmul.h"

namespace heddle {

struct Bmm {
  Matrices a;  // [B, M, K]
  Matrices b;  // [B, K, N]
  Tensor y;    // [B, M, N]

  i32 batches() const { return y.size[0]; }
  i32 rows() const { return y.size[1]; }
  i32 columns() const { return y.size[2]; }
  i32 terms() const { return a.cols(); }
  // The matrix that is number i.
  Tensor result(i32 i) const { return Matrices{.data = y}.at(i).data; }

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    visit_matrices(v, "a", "a.transposed", s.a, "B, M, K", "float");
    visit_matrices(v, "b", "b.transposed", s.b, "B, K, N", "float");
    v.write("y", s.y, "B, M, N");
  }
};

using BmmTile = BatchTile<Bmm>;

}  // namespace heddle
