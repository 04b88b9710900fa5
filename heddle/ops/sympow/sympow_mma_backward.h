// The gradient of y = phi(x) s with respect to x: dx = J' (s dy), where J is the Jacobian of phi at the row. Neither phi nor
// s dy is in memory. mma_sympow has the same gradient, with its own ds and v as s and dy.
#pragma once

#include "heddle/ir/tensor.h"
#include "heddle/ops/sympow/chunk_tiles.h"
#include "heddle/ops/sympow/sympow_columns.h"

namespace heddle {

struct SympowMmaBackward {
  Tensor x;       // [B, T, H, K]
  Tensor s;       // [B, H, chunks * N, E]
  Tensor dy;      // [B, T, H, E]
  Tensor dx;      // [B, T, H, K]
  i32 power = 2;  // or 4
  i32 chunk = 0;  // positions that have one state; 0: all

  ChunkTiles tiles() const { return {x.size[1], chunk}; }
  i32 width() const { return i32(sympow_width(power, x.size[3])); }

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "B, T, H, K");
    v.read("s", s.s, "B, H, C, E");
    v.read("dy", s.dy, "B, T, H, E");
    v.write("dx", s.dx, "B, T, H, K");
    v.attribute("power", s.power);
    v.attribute("chunk", s.chunk);
  }
};

}  // namespace heddle
