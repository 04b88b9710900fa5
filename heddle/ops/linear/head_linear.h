// y = x w^T head by head: the elements of each head of x times the head's own rows of a packed weight, which lie one
// below the other.
#pragma once

#include "heddle/ir/weight.h"

namespace heddle {

struct HeadLinear {
  Tensor x;  // [M, heads * K]
  Weight w;  // [N, K]; N / heads rows of each head
  Tensor y;  // [M, N]
  i32 heads = 1;

  i32 head_rows() const { return w.rows() / heads; }

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, .");
    v.weight("w", s.w, "N, K");
    v.write("y", s.y, "M, N");
    v.attribute("heads", s.heads);
  }
};

}  // namespace heddle
