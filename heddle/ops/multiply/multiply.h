// y = a * b, element by element.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct Multiply {
  Tensor a;  // [M, N]
  Tensor b;  // [M, N]
  Tensor y;  // [M, N]

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("a", s.a, "M, N");
    v.read("b", s.b, "M, N");
    v.write("y", s.y, "M, N");
  }
};

}  // namespace heddle
