// The gradient of power_attention that belongs to keys: dk, dv, and the gradient of the sums of log gates, which is the
// rows' part less the keys' part.
#pragma once

#include "heddle/ir/tensor.h"
#include "heddle/ops/sympow/chunk_tiles.h"

namespace heddle {

struct PowerAttentionKeysBackward {
  Tensor q;                // [B, T, H, K]
  Tensor k;                // [B, T, H, K]
  Tensor v;                // [B, T, H, E]
  Tensor l;                // optional f32 [B, T, H]
  Tensor y;                // [B, T, H, E]
  Tensor total;            // f32 [B, T, H]
  Tensor dy;               // [B, T, H, E]
  Tensor dtotal;           // f32 [B, T, H]
  Tensor dl_rows;          // f32 [B, T, H]
  Tensor dk;               // [B, T, H, K]
  Tensor dv;               // [B, T, H, E]
  Tensor dl;               // f32 [B, T, H]
  i32 power = 2;           // 2 or 4
  float scale = 1;         // multiplies scores before the power
  i32 chunk = 0;           // positions that share a state; 0: all
  bool normalise = false;  // divide by the sum of weights
  float eps = 0;           // added to that sum

  ChunkTiles tiles() const { return {q.size[1], chunk}; }

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("q", s.q, "B, T, H, K");
    v.read("k", s.k, "B, T, H, K");
    v.read("v", s.v, "B, T, H, E");
    v.optional_read("l", s.l, "B, T, H", "f32");
    v.read("y", s.y, "B, T, H, E");
    v.read("total", s.total, "B, T, H", "f32");
    v.read("dy", s.dy, "B, T, H, E");
    v.read("dtotal", s.dtotal, "B, T, H", "f32");
    v.read("dl_rows", s.dl_rows, "B, T, H", "f32");
    v.write("dk", s.dk, "B, T, H, K");
    v.write("dv", s.dv, "B, T, H, E");
    v.write("dl", s.dl, "B, T, H", "f32");
    v.attribute("power", s.power);
    v.attribute("scale", s.scale);
    v.attribute("chunk", s.chunk);
    v.attribute("normalise", s.normalise);
    v.attribute("eps", s.eps);
  }
};

}  // namespace heddle
