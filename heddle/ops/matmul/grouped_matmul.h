// y[m] = a[m] b[i] where row m lies in group i: rows sorted by group times the matrix of each, as a mixture's tokens by expert.
// Group i has the rows from ends[i - 1] to ends[i], which the device knows alone. Rows of no group become 0.
#pragma once

#include "heddle/base/part_of_caller.h"
#include "heddle/ir/matrices.h"

namespace heddle {

struct GroupedMatmul {
  Matrices a;    // [M, K]
  Matrices b;    // [G, K, N]
  Tensor ends;   // i32 [G], ascending, at most M
  Tensor y;      // [M, N]
  i32 unit = 1;  // ends are multiples of it; its kernel needs kGroupUnit

  i32 batches() const { return 1; }
  i32 rows() const { return y.size[0]; }
  i32 columns() const { return y.size[1]; }
  i32 terms() const { return a.cols(); }
  const Tensor& result(i32) const { return y; }

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    visit_matrices(v, "a", "a.transposed", s.a, "M, K", "float");
    visit_matrices(v, "b", "b.transposed", s.b, "G, K, N", "float");
    v.read("ends", s.ends, "G", "i32");
    v.write("y", s.y, "M, N");
    v.attribute("unit", s.unit);
  }
};

}  // namespace heddle
