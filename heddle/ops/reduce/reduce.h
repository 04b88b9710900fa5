// y = sum, maximum or mean of each row. A maximum over a NaN is NaN.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

enum ReduceKind : int { kReduceSum, kReduceMax, kReduceMean, kNumReduceKinds };
constexpr const char* kReduceNames = "sum, max, mean";

// Kernels of a GPU for a call by itself, from the fastest to the simplest: steps of a lesson (docs/kernels.md).
enum ReduceVariant : int { kReduceShuffle, kReduceImproved, kReduceNaive, kNumReduceVariants };
constexpr const char* kReduceVariants = "shuffle, improved, naive";

struct Reduce {
  Tensor x;                      // [M, D]
  Tensor y;                      // f32 [M]
  i32 kind = kReduceSum;         // what is made of a row
  i32 variant = kReduceShuffle;  // the kernel on a GPU

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, D");
    v.write("y", s.y, "M");
    v.choice("kind", s.kind, kReduceNames);
    v.choice("variant", s.variant, kReduceVariants);
  }
};

}  // namespace heddle
