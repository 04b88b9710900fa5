// Adds the outputs of a token's experts, weighted by its shares: y[t] = sum over c of share[t, c] x[t C + c],
// in the order of c. With places y[t] adds rows x[place[t, c]], and nothing for a place below 0: rows that were sorted
// by expert come back, and with one choice a token, rows are gathered.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct ExpertSum {
  Tensor x;      // [T C, D], or with places any number of rows
  Tensor share;  // f32 [T, C]
  Tensor place;  // i32 [T, C], below the rows of x; or none
  Tensor y;      // [T, D]

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "X, D");
    v.read("share", s.share, "T, C", "f32");
    v.optional_read("place", s.place, "T, C", "i32");
    v.write("y", s.y, "T, D");
  }
};

}  // namespace heddle
