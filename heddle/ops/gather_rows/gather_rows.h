// The rows whose logits are wanted: y[i] = x[wanted row i of the step].
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct GatherRows {
  Tensor step;  // u8 [bytes], the host part of the step record
  Tensor x;     // [T, D]
  Tensor y;     // [M, D]

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("step", s.step, ".", "u8");
    v.read("x", s.x, "T, D");
    v.write("y", s.y, "M, D");
  }
};

}  // namespace heddle
