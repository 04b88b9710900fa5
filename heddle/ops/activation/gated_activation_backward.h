// The gradient of gated_activation, of pairs (gate, up) side by side: dgate = dy * up * f'(gate), dup = dy * f(gate).
#pragma once

#include "heddle/ir/tensor.h"
#include "heddle/ops/activation/activation_kind.h"

namespace heddle {

struct GatedActivationBackward {
  Tensor x;          // [M, 2N]
  Tensor dy;         // [M, N]
  Tensor dx;         // [M, 2N]
  i32 kind = kSilu;  // ActivationKind

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, 2N");
    v.read("dy", s.dy, "M, N");
    v.write("dx", s.dx, "M, 2N");
    v.choice("kind", s.kind, kActivationNames);
  }
};

}  // namespace heddle
