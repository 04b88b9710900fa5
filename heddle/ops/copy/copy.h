// y = x, converted to the element type of y.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct Copy {
  Tensor x;  // [M, N]
  Tensor y;  // [M, N]

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, N", "float | i32");
    v.write("y", s.y, "M, N", "float | i32");
  }
};

}  // namespace heddle
