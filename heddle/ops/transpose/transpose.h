// y[n, m] = x[m, n], converted to the element type of y.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct Transpose {
  Tensor x;  // [M, N]
  Tensor y;  // [N, M]

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, N", "float | i32");
    v.write("y", s.y, "N, M", "float | i32");
  }
};

}  // namespace heddle
