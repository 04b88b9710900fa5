// y = index of the largest element of each row, the lowest one of equals.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct Argmax {
  Tensor x;  // [M, N]
  Tensor y;  // i32 [M]

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, N");
    v.write("y", s.y, "M", "i32");
  }
};

}  // namespace heddle
