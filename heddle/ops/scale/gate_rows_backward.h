// The gradient of gate_rows. With s = sigmoid(gate[m]), of each row:
//   dx = s * dy
//   dgate = s * (1 - s) * sum of x * dy
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct GateRowsBackward {
  Tensor x;      // [M, N]
  Tensor gate;   // [M, 1], before the sigmoid
  Tensor dy;     // [M, N]
  Tensor dx;     // [M, N]
  Tensor dgate;  // [M, 1]

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, N");
    v.read("gate", s.gate, "M, .");
    v.read("dy", s.dy, "M, N");
    v.write("dx", s.dx, "M, N");
    v.write("dgate", s.dgate, "M, .");
  }
};

}  // namespace heddle
