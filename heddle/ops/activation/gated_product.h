// y = f(gate) * up, where gate and up are matrices by themselves: SwiGLU, GeGLU (Shazeer, 2020).
#pragma once

#include "heddle/ir/tensor.h"
#include "heddle/ops/activation/activation_kind.h"

namespace heddle {

struct GatedProduct {
  Tensor gate;       // [M, N]
  Tensor up;         // [M, N]
  Tensor y;          // [M, N]
  i32 kind = kSilu;  // ActivationKind

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("gate", s.gate, "M, N");
    v.read("up", s.up, "M, N");
    v.write("y", s.y, "M, N");
    v.choice("kind", s.kind, kActivationNames);
  }
};

}  // namespace heddle
