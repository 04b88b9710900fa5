// y = x + bias: a row added to every row.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct Bias {
  Tensor x;     // [M, N]
  Tensor bias;  // [N]
  Tensor y;     // [M, N]

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, N");
    v.read("bias", s.bias, "N");
    v.write("y", s.y, "M, N");
  }
};

}  // namespace heddle
