// The gradient of state_values: dv and dl. The gates' sum at a chunk's end is in the decay of all of its positions.
#pragma once

#include "heddle/ir/tensor.h"
#include "heddle/ops/sympow/chunk_tiles.h"

namespace heddle {

struct StateValuesBackward {
  Tensor v;                // [B, T, H, E]
  Tensor l;                // optional f32 [B, T, H]
  Tensor ds;               // [B, T, H, P]
  Tensor dv;               // [B, T, H, E]
  Tensor dl;               // f32 [B, T, H]
  i32 chunk = 0;           // positions of a chunk; 0: all
  bool normalise = false;  // a column of decays and seven of zeros follow

  ChunkTiles tiles() const { return {v.size[1], chunk}; }

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("v", s.v, "B, T, H, E");
    v.optional_read("l", s.l, "B, T, H", "f32");
    v.read("ds", s.ds, "B, T, H, P");
    v.write("dv", s.dv, "B, T, H, E");
    v.write("dl", s.dl, "B, T, H", "f32");
    v.attribute("chunk", s.chunk);
    v.attribute("normalise", s.normalise);
  }
};

}  // namespace heddle
