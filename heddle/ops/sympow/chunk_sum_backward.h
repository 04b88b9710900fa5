// The gradient of chunk_sum: dx[t] = sum of dy from t to the end of its chunk.
#pragma once

#include "heddle/ir/tensor.h"
#include "heddle/ops/sympow/chunk_tiles.h"

namespace heddle {

struct ChunkSumBackward {
  Tensor dy;      // f32 [B, T, H]
  Tensor dx;      // f32 [B, T, H]
  i32 chunk = 0;  // positions of a chunk; 0: all

  ChunkTiles tiles() const { return {dy.size[1], chunk}; }

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("dy", s.dy, "B, T, H", "f32");
    v.write("dx", s.dx, "B, T, H", "f32");
    v.attribute("chunk", s.chunk);
  }
};

}  // namespace heddle
