// The gradient of linear for its weight: dw = dy^T x.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct LinearBackwardWeight {
  Tensor x;   // [M, K]
  Tensor dy;  // [M, N]
  Tensor dw;  // [N, K]

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, K");
    v.read("dy", s.dy, "M, N");
    v.write("dw", s.dw, "N, K");
  }
};

}  // namespace heddle
