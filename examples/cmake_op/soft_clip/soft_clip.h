// y = v as far as abs(v) <= limit, and grows by slope beyond, for v = x + shift.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct SoftClip {
  Tensor x;            // [M, N]
  Tensor y;            // [M, N]
  Tensor shift;        // [N]
  float limit = 1.0f;  // positive
  float slope = 0.1f;

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, N");
    v.write("y", s.y, "M, N");
    v.read("shift", s.shift, "N", "f32");
    v.attribute("limit", s.limit);
    v.attribute("slope", s.slope);
  }
};

}  // namespace heddle
