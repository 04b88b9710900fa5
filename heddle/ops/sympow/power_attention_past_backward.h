// The gradient of power_attention with respect to `past`: row i is f_i times the gradient of the row's sums.
#pragma once

#include "heddle/ir/tensor.h"
#include "heddle/ops/sympow/chunk_tiles.h"

namespace heddle {

struct PowerAttentionPastBackward {
  Tensor past;             // [B, T, H, P]
  Tensor l;                // optional f32 [B, T, H]
  Tensor y;                // [B, T, H, E]
  Tensor total;            // f32 [B, T, H]
  Tensor dy;               // [B, T, H, E]
  Tensor dtotal;           // f32 [B, T, H]
  Tensor dpast;            // [B, T, H, P]
  i32 power = 2;           // 2 or 4
  float scale = 1;         // multiplies scores before the power
  bool normalise = false;  // divide by the sum of weights
  float eps = 0;           // added to that sum

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("past", s.past, "B, T, H, P");
    v.optional_read("l", s.l, "B, T, H", "f32");
    v.read("y", s.y, "B, T, H, E");
    v.read("total", s.total, "B, T, H", "f32");
    v.read("dy", s.dy, "B, T, H, E");
    v.read("dtotal", s.dtotal, "B, T, H", "f32");
    v.write("dpast", s.dpast, "B, T, H, P");
    v.attribute("power", s.power);
    v.attribute("scale", s.scale);
    v.attribute("normalise", s.normalise);
    v.attribute("eps", s.eps);
  }
};

}  // namespace heddle
