// The gradient of softmax, from what it has written: dx = y * (dy - sum of dy * y), row by row.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct SoftmaxBackward {
  Tensor y;   // [M, D]
  Tensor dy;  // [M, D]
  Tensor dx;  // [M, D]

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("y", s.y, "M, D");
    v.read("dy", s.dy, "M, D");
    v.write("dx", s.dx, "M, D");
  }
};

}  // namespace heddle
