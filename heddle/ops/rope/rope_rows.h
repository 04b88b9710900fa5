// Rotary positions (Su et al., 2021): pairs of a head's first `rotary_dim` elements turn by the angles of the
// row. Partners are elements 2i and 2i + 1 (interleaved), or i and i + rotary_dim / 2 (half-split). Columns
// past the rotated heads and elements past rotary_dim are passed through.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct RopeRows {
  Tensor x;             // [M, N]
  Tensor table;         // f32 [M, R]: (cos, sin) of each pair
  Tensor y;             // [M, N]
  i32 head_dim = 0;     // elements of a head
  i32 rotary_dim = 0;   // R, elements of a head that turn: an even number
  i32 heads = 0;        // leading heads of a row that turn
  i32 interleaved = 1;  // 1: elements 2i and 2i + 1 turn together; 0: i and i + R / 2

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, N");
    v.read("table", s.table, "M, R", "f32");
    v.write("y", s.y, "M, N");
    v.attribute("head_dim", s.head_dim);
    v.attribute("rotary_dim", s.rotary_dim);
    v.attribute("heads", s.heads);
    v.attribute("interleaved", s.interleaved);
  }
};

}  // namespace heddle
