// y = phi(x), the symmetric power of each row: <phi(q), phi(k)> = <q, k>^power. sympow_columns.h orders its columns.
#pragma once

#include "heddle/ir/tensor.h"
#include "heddle/ops/sympow/sympow_columns.h"

namespace heddle {

struct Sympow {
  Tensor x;       // [M, K]; K a multiple of 8
  Tensor y;       // [M, N]; N = sympow_width(power, K)
  i32 power = 2;  // or 4

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, K");
    v.write("y", s.y, "M, N");
    v.attribute("power", s.power);
  }
};

}  // namespace heddle
