// Power attention inside chunks of positions, with what a state gives of the chunks before (Buckman, Gelada and Zhang,
// 2024: "Symmetric power transformers"). For positions j <= i of one chunk, and sums l of log gates from its begin:
//   weight a_ij = exp(l_i - l_j) (scale <q_i, k_j>)^power
//   part of the past f_i = exp(l_i) scale^power, which multiplies row i of `past`: phi(q_i) times the chunk's state
//   y_i = f_i past_i + sum of a_ij v_j over j;   total_i = f_i past_i[E] + sum of a_ij over j
// normalise: y_i is divided by total_i + eps, and `past` has its part of the total in column E.
// With one chunk and no past it is power attention in its quadratic form.
#pragma once

#include "heddle/ir/tensor.h"
#include "heddle/ops/sympow/chunk_tiles.h"

namespace heddle {

struct PowerAttention {
  Tensor q;                // [B, T, H, K]
  Tensor k;                // [B, T, H, K]
  Tensor v;                // [B, T, H, E]
  Tensor l;                // optional f32 [B, T, H]: inclusive sums of log gates in each chunk
  Tensor past;             // optional [B, T, H, P]: P at least E, or E + 1
  Tensor y;                // [B, T, H, E]
  Tensor total;            // f32 [B, T, H]
  i32 power = 2;           // 2 or 4
  float scale = 1;         // multiplies scores before the power
  i32 chunk = 0;           // positions of a chunk; 0: all
  bool normalise = false;  // divide by the sum of weights
  float eps = 0;           // added to that sum

  ChunkTiles tiles() const { return {q.size[1], chunk}; }

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("q", s.q, "B, T, H, K");
    v.read("k", s.k, "B, T, H, K");
    v.read("v", s.v, "B, T, H, E");
    v.optional_read("l", s.l, "B, T, H", "f32");
    v.optional_read("past", s.past, "B, T, H, P");
    v.write("y", s.y, "B, T, H, E");
    v.write("total", s.total, "B, T, H", "f32");
    v.attribute("power", s.power);
    v.attribute("scale", s.scale);
    v.attribute("chunk", s.chunk);
    v.attribute("normalise", s.normalise);
    v.attribute("eps", s.eps);
  }
};

}  // namespace heddle
