// y = x within [low, high], element by element: projections that some models keep in range (clip_qkv, MosaicML, 2023).
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct Clamp {
  Tensor x;        // [M, N]
  Tensor y;        // [M, N]
  float low = -1;  // at most high
  float high = 1;  // at least low

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, N");
    v.write("y", s.y, "M, N");
    v.attribute("low", s.low);
    v.attribute("high", s.high);
  }
};

}  // namespace heddle
