// Root mean square norm: y = x / sqrt(mean(x^2) + eps) * weight, over the last dimension (Zhang and Sennrich,
// 2019).
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct RmsNorm {
  Tensor x;           // [M, D]
  Tensor weight;      // [D]
  Tensor y;           // [M, D]
  float eps = 1e-5f;  // added to the mean of squares

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, D");
    v.read("weight", s.weight, "D");
    v.write("y", s.y, "M, D");
    v.attribute("eps", s.eps);
  }
};

}  // namespace heddle
