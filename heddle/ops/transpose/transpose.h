// y[n, m] = x[m, n], converted to the element type of y.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct Transpose {
  Tensor x;           // [M, N]
  Tensor y;           // [N, M]
  i32 tile_size = 0;  // rows and columns of a worker's tile, which change no value; 0: heddle chooses

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, N", "float | i32");
    v.write("y", s.y, "N, M", "float | i32");
    v.attribute("tile_size", s.tile_size);
  }
};

}  // namespace heddle
