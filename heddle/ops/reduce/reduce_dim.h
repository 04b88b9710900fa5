// y[g, d] = sum, maximum or mean of x[g, m, d] over m: a reduction over any dimension, or over several neighbouring ones as one.
#pragma once

#include "heddle/ops/reduce/over_rows.h"
#include "heddle/ops/reduce/reduce.h"

namespace heddle {

enum ReduceResult : int { kResultAsInput, kResultF32 };
constexpr const char* kReduceResults = "input, f32";

struct ReduceDim {
  Tensor x;                     // [G, M, D]
  Tensor y;                     // [G, D]
  i32 kind = kReduceSum;        // what is made of a row
  i32 result = kResultAsInput;  // the dtype of y where no y is given

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "G, M, D");
    v.write("y", s.y, "G, D");
    v.choice("kind", s.kind, kReduceNames);
    v.choice("result", s.result, kReduceResults);
  }
};

}  // namespace heddle
