// The gradient of state_scan with respect to sums of log gates: at the end of chunk g, decay_g times the sum of part[g];
// zero elsewhere.
#pragma once

#include "heddle/ir/tensor.h"
#include "heddle/ops/sympow/chunk_tiles.h"

namespace heddle {

struct StateScanGates {
  Tensor part;    // f32 [B, H, chunks, P]
  Tensor l;       // f32 [B, T, H]
  Tensor dl;      // f32 [B, T, H]
  i32 chunk = 0;  // positions of a chunk; 0: all

  ChunkTiles tiles() const { return {l.size[1], chunk}; }

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("part", s.part, "B, H, G, P", "f32");
    v.read("l", s.l, "B, T, H", "f32");
    v.write("dl", s.dl, "B, T, H", "f32");
    v.attribute("chunk", s.chunk);
  }
};

}  // namespace heddle
