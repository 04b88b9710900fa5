// Rounds a matrix to codes of 8 bits in both layouts, in one read, at scales that are there: x = scale * code. Elements beyond the largest
// code become it.
#pragma once

#include "heddle/ir/tensor.h"
#include "heddle/ops/quantize/code_kind.h"

namespace heddle {

struct QuantizeAt {
  Tensor x;                  // [M, K], both multiples of 4
  Tensor scales;             // f32 [1, 1], [M, 1], or [M / 128, K / 128], rounded up
  Tensor transposed_scales;  // f32 [1, 1], [K, 1], or [K / 128, M / 128], rounded up
  Tensor codes;              // [M, K]
  Tensor transposed;         // [K, M]
  i32 code = kCodeE4M3;      // the type of codes

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, K");
    v.read("scales", s.scales, "., .", "f32");
    v.read("transposed_scales", s.transposed_scales, "., .", "f32");
    v.write("codes", s.codes, "M, K", "f8e4m3 | f8e5m2 | i8");
    v.write("transposed", s.transposed, "K, M", "f8e4m3 | f8e5m2 | i8");
    v.choice("code", s.code, kCodeNames);
  }
};

// The number of scale of line i, of `count` for `lines`: one for all, one for each, or one for each 128.
constexpr i32 place_of_scale(i32 i, i32 count, i32 lines) {
  return count == 1 ? 0 : count == lines ? i : i / kCodeBlock;
}

}  // namespace heddle
