// The gradient of linear for its input: dx = dy w.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct LinearBackwardInput {
  Tensor w;   // [N, K]
  Tensor dy;  // [M, N]
  Tensor dx;  // [M, K]

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("w", s.w, "N, K");
    v.read("dy", s.dy, "M, N");
    v.write("dx", s.dx, "M, K");
  }
};

}  // namespace heddle
