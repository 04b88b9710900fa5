// y = x w^T: rows of x times rows of a packed weight. Prologue and epilogues make a chain around it.
#pragma once

#include "heddle/base/part_of_caller.h"
#include "heddle/ir/weight.h"

namespace heddle {

struct Linear {
  Tensor x;  // [M, K]; made by the prologue where there is one
  Weight w;  // [N, K]
  Tensor y;  // [M, N]; what the last epilogue leaves

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, K");
    v.weight("w", s.w, "N, K");
    v.write("y", s.y, "M, N");
  }
};

}  // namespace heddle
