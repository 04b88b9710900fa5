// y = factor * x, element by element: the multipliers of residuals and logits that some models have.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct Scale {
  Tensor x;          // [M, N]
  Tensor y;          // [M, N]
  float factor = 1;  // multiplies x

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, N");
    v.write("y", s.y, "M, N");
    v.attribute("factor", s.factor);
  }
};

}  // namespace heddle
