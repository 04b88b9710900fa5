// The gradient of head_norm. With z = (x - mean) * s, s = 1 / sqrt(mean((x - mean)^2) + eps) and g = weight * dy, of
// each head of a row, the means of x and g being 0 unless `centred`:
//   dx = s * (g - mean(g) - z * mean(g * z)); dx = dy in columns after the heads
//   dweight = sum of dy * z over the rows: here in parts of `part_rows` rows, which column_sum adds up
#pragma once

#include "heddle/ir/tensor.h"
#include "heddle/kit/rows/parts.h"

namespace heddle {

struct HeadNormBackward {
  Tensor x;              // [M, N]
  Tensor weight;         // [W], W = heads * head_dim
  Tensor dy;             // [M, N]
  Tensor dx;             // [M, N]
  Tensor dweight_parts;  // f32 [P, W], P = M / part_rows, rounded up
  i32 head_dim = 0;      // elements of a head
  i32 heads = 0;         // leading heads of a row that are normalised
  i32 centred = 0;       // 1: less the mean, as layer_norm
  float eps = 1e-5f;     // added to the mean of squares
  i32 part_rows = 0;     // 0: what suits x

  i32 parts() const { return dweight_parts.size[0]; }
  i32 most_rows() const {
    const i32 pieces = i32(ceil_div(x.last(), head_dim));
    return rows_of_part(part_rows, x.size[0], head_dim, size_of(x.dtype), pieces);
  }

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, N");
    v.read("weight", s.weight, "W");
    v.read("dy", s.dy, "M, N");
    v.write("dx", s.dx, "M, N");
    v.write("dweight_parts", s.dweight_parts, "P, W", "f32");
    v.attribute("head_dim", s.head_dim);
    v.attribute("heads", s.heads);
    v.attribute("centred", s.centred);
    v.attribute("eps", s.eps);
    v.attribute("part_rows", s.part_rows);
  }
};

}  // namespace heddle
