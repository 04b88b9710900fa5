// y[m] = sigmoid(gate[m]) x[m]: each row by a gate of its own, as Qwen's mixtures weigh their shared expert.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct GateRows {
  Tensor x;     // [M, N]
  Tensor gate;  // [M, 1], before the sigmoid
  Tensor y;     // [M, N]

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, N");
    v.read("gate", s.gate, "M, .");
    v.write("y", s.y, "M, N");
  }
};

}  // namespace heddle
