// The gradient of activation: dx = dy * f'(x), element by element.
#pragma once

#include "heddle/ir/tensor.h"
#include "heddle/ops/activation/activation_kind.h"

namespace heddle {

struct ActivationBackward {
  Tensor x;          // [M, N]
  Tensor dy;         // [M, N]
  Tensor dx;         // [M, N]
  i32 kind = kSilu;  // ActivationKind

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, N");
    v.read("dy", s.dy, "M, N");
    v.write("dx", s.dx, "M, N");
    v.choice("kind", s.kind, kActivationNames);
  }
};

}  // namespace heddle
