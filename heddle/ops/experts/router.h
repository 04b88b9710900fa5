// The logits that choose experts: y = x w^T in FP32. A linear multiplies rows as narrow as its weight, which is enough to
// choose another expert where two are close; here rows keep all their bits.
#pragma once

#include "heddle/ir/weight.h"

namespace heddle {

struct Router {
  Tensor x;  // [T, K]
  Weight w;  // [E, K]
  Tensor y;  // f32 [T, E]

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "T, K");
    v.weight("w", s.w, "E, K");
    v.write("y", s.y, "T, E", "f32");
  }
};

}  // namespace heddle
