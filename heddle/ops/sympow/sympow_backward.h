// The gradient of sympow: dx = J' dy, where J is the Jacobian of phi at x.
#pragma once

#include "heddle/ir/tensor.h"
#include "heddle/ops/sympow/sympow_columns.h"

namespace heddle {

struct SympowBackward {
  Tensor x;       // [M, K]
  Tensor dy;      // [M, N]
  Tensor dx;      // [M, K]
  i32 power = 2;  // or 4

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, K");
    v.read("dy", s.dy, "M, N");
    v.write("dx", s.dx, "M, K");
    v.attribute("power", s.power);
  }
};

}  // namespace heddle
