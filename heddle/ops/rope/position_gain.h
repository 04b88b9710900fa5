// y = x with each row times the gain of its position: gains[min(position / period, G - 1)]. Llama 4 (2025) lets queries
// grow this way far into a text.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct PositionGain {
  Tensor state;    // u8 [bytes], the device part of the step record
  Tensor x;        // [M, N]
  Tensor gains;    // f32 [G]
  Tensor y;        // [M, N]
  i32 period = 1;  // positions for which a gain holds

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("state", s.state, ".", "u8");
    v.read("x", s.x, "M, N");
    v.read("gains", s.gains, ".", "f32");
    v.write("y", s.y, "M, N");
    v.attribute("period", s.period);
  }
};

}  // namespace heddle
