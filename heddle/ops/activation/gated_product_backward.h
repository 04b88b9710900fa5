// The gradient of gated_product: dgate = dy * up * f'(gate), dup = dy * f(gate).
#pragma once

#include "heddle/ir/tensor.h"
#include "heddle/ops/activation/activation_kind.h"

namespace heddle {

struct GatedProductBackward {
  Tensor gate;       // [M, N]
  Tensor up;         // [M, N]
  Tensor dy;         // [M, N]
  Tensor dgate;      // [M, N]
  Tensor dup;        // [M, N]
  i32 kind = kSilu;  // ActivationKind

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("gate", s.gate, "M, N");
    v.read("up", s.up, "M, N");
    v.read("dy", s.dy, "M, N");
    v.write("dgate", s.dgate, "M, N");
    v.write("dup", s.dup, "M, N");
    v.choice("kind", s.kind, kActivationNames);
  }
};

}  // namespace heddle
