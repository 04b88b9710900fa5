// Rotary positions (Su et al., 2021) as Hugging Face has them: heads turn by the cosines and sines of their positions, which
// are given for each element of a head. Of elements a and b that turn together,
//   a' = a cos[a] - b sin[a],  b' = b cos[b] + a sin[b].
// These are i and i + R / 2 (half-split), or 2i and 2i + 1 (interleaved). Elements past R are passed through.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct Rope {
  Tensor q;                  // [B, H, S, D]: queries or keys, with any strides
  Tensor cos;                // [C, S, R], where C is 1 or B
  Tensor sin;                // [C, S, R]
  Tensor y;                  // [B, H, S, D]
  bool interleaved = false;  // elements 2i and 2i + 1 turn together, and not i and i + R / 2

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("q", s.q, "B, H, S, D");
    v.read("cos", s.cos, "C, S, R");
    v.read("sin", s.sin, "C, S, R");
    v.write("y", s.y, "B, H, S, D");
    v.attribute("interleaved", s.interleaved);
  }
};

}  // namespace heddle
