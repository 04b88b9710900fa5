// y = exp(x - max) / sum of exp(x - max), over the last dimension.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

constexpr i32 kMostKeptWeights = 4096;  // elements of a row at most, whose weights a tile keeps on chip

struct Softmax {
  Tensor x;  // [M, D]
  Tensor y;  // [M, D]

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, D");
    v.write("y", s.y, "M, D");
  }
};

}  // namespace heddle
