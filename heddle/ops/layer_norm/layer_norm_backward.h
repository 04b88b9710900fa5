// The gradient of layer_norm. With s = 1 / sqrt(variance + eps), z = (x - mean) * s and g = weight * dy, of each row:
//   dx = s * (g - mean(g) - z * mean(g * z))
//   dweight = sum of dy * z, dbias = sum of dy over the rows: here in parts of `part_rows` rows, which column_sum adds up
#pragma once

#include "heddle/ir/tensor.h"
#include "heddle/kit/rows/parts.h"

namespace heddle {

struct LayerNormBackward {
  Tensor x;              // [M, D]
  Tensor weight;         // [D]
  Tensor dy;             // [M, D]
  Tensor dsum;           // [M, D] or absent: added to dx, where x is a sum that is used elsewhere too
  Tensor dx;             // [M, D]
  Tensor dweight_parts;  // f32 [P, D], P = M / part_rows, rounded up
  Tensor dbias_parts;    // f32 [P, D]
  float eps = 1e-5f;     // added to the variance
  i32 part_rows = 0;     // 0: what suits x

  static constexpr i32 kAtWork = 2;  // rows of which a CTA needs elements at once

  i32 parts() const { return dweight_parts.size[0]; }
  i32 most_rows() const { return rows_of_part(part_rows, x.size[0], x.last(), size_of(x.dtype), 1, kAtWork); }

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, D");
    v.read("weight", s.weight, "D");
    v.read("dy", s.dy, "M, D");
    v.optional_read("dsum", s.dsum, "M, D");
    v.write("dx", s.dx, "M, D");
    v.write("dweight_parts", s.dweight_parts, "P, D", "f32");
    v.write("dbias_parts", s.dbias_parts, "P, D", "f32");
    v.attribute("eps", s.eps);
    v.attribute("part_rows", s.part_rows);
  }
};

}  // namespace heddle
