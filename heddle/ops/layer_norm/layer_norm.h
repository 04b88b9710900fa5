// y = (x - mean) / sqrt(variance + eps) * weight + bias, over the last dimension (Ba et al., 2016).
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct LayerNorm {
  Tensor x;           // [M, D]
  Tensor weight;      // [D]
  Tensor bias;        // [D] or absent
  Tensor y;           // [M, D]
  float eps = 1e-5f;  // added to the variance

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, D");
    v.read("weight", s.weight, "D");
    v.optional_read("bias", s.bias, "D");
    v.write("y", s.y, "M, D");
    v.attribute("eps", s.eps);
  }
};

}  // namespace heddle
