// sum = x + residual, y = layer_norm(sum): the norm at the head of a block, and the residual stream that goes on. The norm
// takes the sum as it is stored.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct LayerNormResidual {
  Tensor x;           // [M, D]
  Tensor residual;    // [M, D]
  Tensor weight;      // [D]
  Tensor bias;        // [D] or absent
  Tensor y;           // [M, D]
  Tensor sum;         // [M, D]
  float eps = 1e-5f;  // added to the variance

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, D");
    v.read("residual", s.residual, "M, D");
    v.read("weight", s.weight, "D");
    v.optional_read("bias", s.bias, "D");
    v.write("y", s.y, "M, D");
    v.write("sum", s.sum, "M, D");
    v.attribute("eps", s.eps);
  }
};

}  // namespace heddle
