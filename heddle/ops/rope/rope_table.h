// Rotary angles of a step: row m of the table holds the pairs (cos, sin) of position(m) * inv_freq[i]. The angle
// is one f32 product, as transformers computes it.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct RopeTable {
  Tensor state;     // u8 [bytes], the device part of the step record
  Tensor inv_freq;  // f32 [P]
  Tensor table;     // f32 [M, 2P]
  float scale = 1;  // on both: the attention scaling of some variants

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("state", s.state, ".", "u8");
    v.read("inv_freq", s.inv_freq, "P", "f32");
    v.write("table", s.table, "M, 2P", "f32");
    v.attribute("scale", s.scale);
  }
};

}  // namespace heddle
