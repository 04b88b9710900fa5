// The gradient of reduce_dim: dx[g, m, d] is dy[g, d] for a sum, a part of it for a mean. For a maximum the elements that are the
// largest share it; where one is NaN, all get NaN.
#pragma once

#include "heddle/ops/reduce/reduce.h"

namespace heddle {

struct ReduceDimBackward {
  Tensor x;   // [G, M, D]; its values count for a maximum alone
  Tensor dy;  // [G, D]
  Tensor dx;  // [G, M, D]
  i32 kind = kReduceSum;

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "G, M, D");
    v.read("dy", s.dy, "G, D");
    v.write("dx", s.dx, "G, M, D");
    v.choice("kind", s.kind, kReduceNames);
  }
};

}  // namespace heddle
