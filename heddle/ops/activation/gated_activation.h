// y = f(gate) * up, where the columns of x are pairs (gate, up) side by side: SwiGLU, GeGLU (Shazeer, 2020).
#pragma once

#include "heddle/ir/tensor.h"
#include "heddle/ops/activation/activation_kind.h"

namespace heddle {

struct GatedActivation {
  Tensor x;          // [M, 2N]
  Tensor y;          // [M, N]
  i32 kind = kSilu;  // ActivationKind

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, 2N");
    v.write("y", s.y, "M, N");
    v.choice("kind", s.kind, kActivationNames);
  }
};

}  // namespace heddle
