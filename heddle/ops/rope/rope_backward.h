// The gradient of rope: dq is dy turned back.
//   da = dy[a] cos[a] + dy[b] sin[b],  db = dy[b] cos[b] - dy[a] sin[a]
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct RopeBackward {
  Tensor dy;                 // [B, H, S, D]
  Tensor cos;                // [C, S, R], where C is 1 or B
  Tensor sin;                // [C, S, R]
  Tensor dq;                 // [B, H, S, D]
  bool interleaved = false;  // elements 2i and 2i + 1 turn together, and not i and i + R / 2

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("dy", s.dy, "B, H, S, D");
    v.read("cos", s.cos, "C, S, R");
    v.read("sin", s.sin, "C, S, R");
    v.write("dq", s.dq, "B, H, S, D");
    v.attribute("interleaved", s.interleaved);
  }
};

}  // namespace heddle
