// y = phi(x) s: the symmetric power of each row of x (sympow_columns.h), times the state of the row's chunk. phi is never
// in memory. Chunk c of head h of batch b has rows [c N, c N + N) of s[b, h], where N is the number of columns of phi.
#pragma once

#include "heddle/ir/tensor.h"
#include "heddle/ops/sympow/chunk_tiles.h"
#include "heddle/ops/sympow/sympow_columns.h"

namespace heddle {

struct SympowMma {
  Tensor x;       // [B, T, H, K]
  Tensor s;       // [B, H, chunks * N, E]
  Tensor y;       // [B, T, H, E]
  i32 power = 2;  // or 4
  i32 chunk = 0;  // positions that have one state; 0: all

  ChunkTiles tiles() const { return {x.size[1], chunk}; }
  i32 width() const { return i32(sympow_width(power, x.size[3])); }

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "B, T, H, K");
    v.read("s", s.s, "B, H, C, E");
    v.write("y", s.y, "B, T, H, E");
    v.attribute("power", s.power);
    v.attribute("chunk", s.chunk);
  }
};

}  // namespace heddle
