// y[n] = sum over m of x[m, n], the rows added one after the other.
#pragma once

#include "heddle/ops/reduce/over_rows.h"
#include "heddle/ops/reduce/reduce.h"

namespace heddle {

struct ColumnSum {
  Tensor x;  // [M, N]
  Tensor y;  // f32 [N]

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, N");
    v.write("y", s.y, "N");
  }
};

}  // namespace heddle
