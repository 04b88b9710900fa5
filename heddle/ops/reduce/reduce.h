// y = sum, maximum or mean of each row.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

enum ReduceKind : int { kReduceSum, kReduceMax, kReduceMean, kNumReduceKinds };
constexpr const char* kReduceNames = "sum, max, mean";

struct Reduce {
  Tensor x;  // [M, D]
  Tensor y;  // f32 [M]
  i32 kind = kReduceSum;

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, D");
    v.write("y", s.y, "M");
    v.choice("kind", s.kind, kReduceNames);
  }
};

}  // namespace heddle
