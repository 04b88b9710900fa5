// Adds the outputs of a token's experts, weighted by its shares: y[t] = sum over c of share[t, c] x[t C + c],
// in the order of c.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct ExpertSum {
  Tensor x;      // [T C, D]
  Tensor share;  // f32 [T, C]
  Tensor y;      // [T, D]

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "X, D");
    v.read("share", s.share, "T, C", "f32");
    v.write("y", s.y, "T, D");
  }
};

}  // namespace heddle
