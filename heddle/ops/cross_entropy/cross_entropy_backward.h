// The gradient of cross_entropy, in place of the logits if the caller wants. With p = exp(z - lse) and s = label_smoothing:
//   dz = dloss * ((1 + 2 * z_loss * lse) * p - (1 - s) * [column is target] - s / V) + dlse * p
//   dlogits = dz * (1 - tanh(logits / softcap)^2), or dz where softcap is 0
// The loss of ignored rows has no gradient; a target that is no column makes its row NaN.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct CrossEntropyBackward {
  Tensor logits;              // [M, V]
  Tensor target;              // i32 or i64 [M]
  Tensor lse;                 // f32 [M]
  Tensor dloss;               // f32 [M]
  Tensor dlse;                // f32 [M] or absent
  Tensor dlogits;             // [M, V]
  i32 ignore_index = -100;    // a target that counts for nothing
  float label_smoothing = 0;  // 0 to 1: the part of the loss that all columns share
  float softcap = 0;          // 0: none
  float z_loss = 0;           // weight of lse^2; 0: none

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("logits", s.logits, "M, V");
    v.read("target", s.target, "M", "i32 | i64");
    v.read("lse", s.lse, "M", "f32");
    v.read("dloss", s.dloss, "M", "f32");
    v.optional_read("dlse", s.dlse, "M", "f32");
    v.write("dlogits", s.dlogits, "M, V");
    v.attribute("ignore_index", s.ignore_index);
    v.attribute("label_smoothing", s.label_smoothing);
    v.attribute("softcap", s.softcap);
    v.attribute("z_loss", s.z_loss);
  }
};

}  // namespace heddle
