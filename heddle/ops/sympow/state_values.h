// The terms of a chunk's state, for mma_sympow: v times the decay from the position to the chunk's end.
// normalise: a column of decays follows, whose product with phi is the total of the state, and seven of zeros.
#pragma once

#include "heddle/ir/tensor.h"
#include "heddle/ops/sympow/chunk_tiles.h"

namespace heddle {

struct StateValues {
  Tensor v;                // [B, T, H, E]
  Tensor l;                // optional f32 [B, T, H]: inclusive sums of log gates in each chunk
  Tensor s;                // [B, T, H, P]; P = E, or E + 8
  i32 chunk = 0;           // positions of a chunk; 0: all
  bool normalise = false;  // a column of decays and seven of zeros follow

  ChunkTiles tiles() const { return {v.size[1], chunk}; }

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("v", s.v, "B, T, H, E");
    v.optional_read("l", s.l, "B, T, H", "f32");
    v.write("s", s.s, "B, T, H, P");
    v.attribute("chunk", s.chunk);
    v.attribute("normalise", s.normalise);
  }
};

}  // namespace heddle
