// y = a b: the product of two matrices as they lie in memory, of activations or of codes with scales (ir/tensor.h).
// Sums are in FP32; their order depends only on K and N. Narrow elements are multiplied as bf16, or as f16 if the other matrix is f16.
#pragma once

#include "heddle/ir/matrices.h"

namespace heddle {

struct Matmul {
  Matrix a;                 // [M, K]
  Matrix b;                 // [K, N]
  Tensor y;                 // [M, N]
  bool allow_tf32 = false;  // products of f32 may have 10 bits of fraction, with sums in f32

  // As its kernel (matmul_kernel.sm90.cuh) asks each op that it serves.
  i32 batches() const { return 1; }
  i32 rows() const { return y.size[0]; }
  i32 columns() const { return y.size[1]; }
  i32 terms() const { return a.cols(); }
  const Tensor& result(i32) const { return y; }

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.matrix("a", s.a, "M, K");
    v.matrix("b", s.b, "K, N");
    v.write("y", s.y, "M, N");
    v.attribute("allow_tf32", s.allow_tf32);
  }
};

}  // namespace heddle
