// The gradient of add, of a and b alike: dx = dy, plus the gradient of the copy where there is one.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct AddBackward {
  Tensor dy;     // [M, N]
  Tensor dcopy;  // [M, N] or absent
  Tensor dx;     // [M, N]

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("dy", s.dy, "M, N");
    v.optional_read("dcopy", s.dcopy, "M, N");
    v.write("dx", s.dx, "M, N");
  }
};

}  // namespace heddle
