// y[i] = a b over the terms of group i: the gradients of the matrices of grouped_matmul. Group i has the terms from ends[i - 1] to
// ends[i], which the device knows alone; one without terms gets 0.
#pragma once

#include "heddle/base/part_of_caller.h"
#include "heddle/ir/matrices.h"
#include "heddle/ops/matmul/batch_tile.h"

namespace heddle {

struct GroupedTerms {
  Matrices a;    // [M, K]
  Matrices b;    // [K, N]
  Tensor ends;   // i32 [G], ascending, at most K
  Tensor y;      // [G, M, N]
  i32 unit = 1;  // ends are multiples of it; its kernel needs kGroupUnit

  i32 batches() const { return y.size[0]; }
  i32 rows() const { return y.size[1]; }
  i32 columns() const { return y.size[2]; }
  i32 terms() const { return a.cols(); }
  Tensor result(i32 i) const { return Matrices{.data = y}.at(i).data; }

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    visit_matrices(v, "a", "a.transposed", s.a, "M, K", "float");
    visit_matrices(v, "b", "b.transposed", s.b, "K, N", "float");
    v.read("ends", s.ends, "G", "i32");
    v.write("y", s.y, "G, M, N");
    v.attribute("unit", s.unit);
  }
};

using GroupedTermsTile = BatchTile<GroupedTerms>;

}  // namespace heddle
