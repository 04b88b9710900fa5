// The gradient of embedding: dtable[v] = scale * sum of dy[i] over the rows i that took row v, added in the order of
// i. A row of the table that nobody took gets 0; a row i that asked for one outside of the table adds nothing.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct EmbeddingBackward {
  Tensor state;   // u8 [bytes], the device part of the step record
  Tensor table;   // [V, D]: its sizes alone count
  Tensor dy;      // [M, D]
  Tensor dcopy;   // [M, D] or absent: of the forward's copy
  Tensor dtable;  // f32 [V, D]
  i32 by_position = 0;
  float scale = 1;

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("state", s.state, ".", "u8");
    v.read("table", s.table, "V, D");
    v.read("dy", s.dy, "M, D");
    v.optional_read("dcopy", s.dcopy, "M, D");
    v.write("dtable", s.dtable, "V, D", "f32");
    v.attribute("by_position", s.by_position);
    v.attribute("scale", s.scale);
  }
};

}  // namespace heddle
