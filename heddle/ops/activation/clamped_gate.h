// y = (up + 1) gate sigmoid(alpha gate), where the columns of x are pairs (gate, up) side by side, gate is at most
// `limit` and up lies within +-limit (OpenAI, 2025: gpt-oss).
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct ClampedGate {
  Tensor x;              // [M, 2N]
  Tensor y;              // [M, N]
  float alpha = 1.702f;  // slope of the sigmoid
  float limit = 7;       // positive

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, 2N");
    v.write("y", s.y, "M, N");
    v.attribute("alpha", s.alpha);
    v.attribute("limit", s.limit);
  }
};

}  // namespace heddle
