// y = x * x, element by element.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct Square {
  Tensor x;  // [M, N]
  Tensor y;  // [M, N]

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, N");
    v.write("y", s.y, "M, N");
  }
};

}  // namespace heddle
