// Rounds a matrix to codes of 8 bits in both layouts, as products of training want it, in one read: x = scale * code with scales of
// 1 x 128 elements of x, and the same of x transposed.
#pragma once

#include "heddle/ir/tensor.h"
#include "heddle/ops/quantize/code_kind.h"

namespace heddle {

struct QuantizeBoth {
  Tensor x;                  // [M, K], both multiples of 4
  Tensor codes;              // [M, K]
  Tensor scales;             // f32 [M, G], G = K / 128, rounded up
  Tensor transposed;         // [K, M]
  Tensor transposed_scales;  // f32 [K, H], H = M / 128, rounded up
  i32 code = kCodeE4M3;      // the type of codes

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, K");
    v.write("codes", s.codes, "M, K", "f8e4m3 | f8e5m2 | i8");
    v.write("scales", s.scales, "M, G", "f32");
    v.write("transposed", s.transposed, "K, M", "f8e4m3 | f8e5m2 | i8");
    v.write("transposed_scales", s.transposed_scales, "K, H", "f32");
    v.choice("code", s.code, kCodeNames);
  }
};

}  // namespace heddle
