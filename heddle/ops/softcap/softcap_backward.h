// The gradient of softcap: dx = dy * (1 - tanh(x / cap)^2), element by element.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct SoftcapBackward {
  Tensor x;       // [M, N]
  Tensor dy;      // [M, N]
  Tensor dx;      // [M, N]
  float cap = 1;  // positive

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, N");
    v.read("dy", s.dy, "M, N");
    v.write("dx", s.dx, "M, N");
    v.attribute("cap", s.cap);
  }
};

}  // namespace heddle
