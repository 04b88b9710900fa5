// y = cap * tanh(x / cap), element by element: values bend towards +-cap (Gemma 2, 2024).
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct Softcap {
  Tensor x;       // [M, N]
  Tensor y;       // [M, N]
  float cap = 1;  // positive

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, N");
    v.write("y", s.y, "M, N");
    v.attribute("cap", s.cap);
  }
};

}  // namespace heddle
