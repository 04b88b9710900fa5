// Rows of a table: y[i] = table[token of row i] * scale, or table[position of row i] * scale.
#pragma once

#include "heddle/ir/weight.h"

namespace heddle {

struct Embedding {
  Tensor state;  // u8 [bytes], the device part of the step record
  Weight table;  // [V, D]
  Tensor y;      // [M, D]
  Tensor copy;   // [M, D] or absent: y again, rounded to its own element type
  i32 by_position = 0;
  float scale = 1;

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("state", s.state, ".", "u8");
    v.weight("table", s.table, "V, D");
    v.write("y", s.y, "M, D");
    v.optional_write("copy", s.copy, "M, D");
    v.attribute("by_position", s.by_position);
    v.attribute("scale", s.scale);
  }
};

}  // namespace heddle
