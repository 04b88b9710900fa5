// Rounds rows to codes of 8 bits with scales: x = scale * code. A scale is that of a row, or of 128 neighbours in a row (`by`), and
// makes the largest of them the largest code.
#pragma once

#include "heddle/ir/tensor.h"
#include "heddle/ops/quantize/code_kind.h"

namespace heddle {

enum ScaleKind : int { kScaleByRow, kScaleByBlock, kNumScaleKinds };

struct Quantize {
  Tensor x;              // [M, K]
  Tensor codes;          // [M, K]
  Tensor scales;         // f32 [M, G], G = 1, or K / 128, rounded up
  i32 code = kCodeE4M3;  // the type of codes
  i32 by = kScaleByRow;  // a scale of each row, or of each 128 neighbours

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, K");
    v.write("codes", s.codes, "M, K", "f8e4m3 | f8e5m2 | i8");
    v.write("scales", s.scales, "M, G", "f32");
    v.choice("code", s.code, kCodeNames);
    v.choice("by", s.by, "row, block");
  }
};

}  // namespace heddle
