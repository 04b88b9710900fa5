// y = a + b, element by element, and on request a second output in another element type.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct Add {
  Tensor a;     // [M, N]
  Tensor b;     // [M, N]
  Tensor y;     // [M, N]
  Tensor copy;  // [M, N] or absent: y again, rounded to its own element type

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("a", s.a, "M, N");
    v.read("b", s.b, "M, N");
    v.write("y", s.y, "M, N");
    v.optional_write("copy", s.copy, "M, N");
  }
};

}  // namespace heddle
