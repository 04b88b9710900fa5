// y[t] = sum of x from the begin of the chunk of position t to t itself: log gates become those of a whole chunk.
#pragma once

#include "heddle/ir/tensor.h"
#include "heddle/ops/sympow/chunk_tiles.h"

namespace heddle {

struct ChunkSum {
  Tensor x;       // f32 [B, T, H]
  Tensor y;       // f32 [B, T, H]
  i32 chunk = 0;  // positions of a chunk; 0: all

  ChunkTiles tiles() const { return {x.size[1], chunk}; }

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "B, T, H", "f32");
    v.write("y", s.y, "B, T, H", "f32");
    v.attribute("chunk", s.chunk);
  }
};

}  // namespace heddle
