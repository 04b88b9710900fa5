// y = x + the bias of each entry's expert: entry n of token t is row t C + n, with C choices per token. Rows of dead
// tokens keep what they had.
#pragma once

#include "heddle/ir/step.h"
#include "heddle/ir/tensor.h"

namespace heddle {

struct ExpertBias {
  Tensor step;    // u8 [bytes], the host part of the step record
  Tensor choice;  // i32 [T, C]: experts
  Tensor x;       // [T C, D]
  Tensor bias;    // [E D]: of one expert after another
  Tensor y;       // [T C, D]

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("step", s.step, ".", "u8");
    v.read("choice", s.choice, "T, C", "i32");
    v.read("x", s.x, "X, D");
    v.read("bias", s.bias, ".");
    v.write("y", s.y, "Y, D");
  }
};

}  // namespace heddle
