// y = f(x), element by element: SiLU, GELU exact or by tanh, ReLU.
#pragma once

#include "heddle/ir/tensor.h"
#include "heddle/ops/activation/activation_kind.h"

namespace heddle {

struct Activation {
  Tensor x;          // [M, N]
  Tensor y;          // [M, N]
  i32 kind = kSilu;  // ActivationKind

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, N");
    v.write("y", s.y, "M, N");
    v.choice("kind", s.kind, kActivationNames);
  }
};

}  // namespace heddle
