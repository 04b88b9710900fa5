// Norm of each head: the leading `heads` heads of a row are normalised one by one, as rms_norm does a row or, if
// `centred`, as layer_norm without a bias does; columns after them are passed through (queries and keys, Henry et
// al., 2020).
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct HeadNorm {
  Tensor x;           // [M, N]
  Tensor weight;      // [heads * head_dim]: of each column
  Tensor y;           // [M, N]
  i32 head_dim = 0;   // elements of a head
  i32 heads = 0;      // leading heads of a row that are normalised
  i32 centred = 0;    // 1: less the mean, as layer_norm
  float eps = 1e-5f;  // added to the mean of squares

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, N");
    v.read("weight", s.weight, ".");
    v.write("y", s.y, "M, N");
    v.attribute("head_dim", s.head_dim);
    v.attribute("heads", s.heads);
    v.attribute("centred", s.centred);
    v.attribute("eps", s.eps);
  }
};

}  // namespace heddle
