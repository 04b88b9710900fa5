// The loss of a classifier, row by row. With z = softcap * tanh(logits / softcap), or the logits themselves where softcap is 0,
// lse = log(sum of exp(z)), and s = label_smoothing:
//   loss = lse - (1 - s) * z[target] - s * mean(z) + z_loss * lse^2
// Rows whose target is ignore_index have loss 0. A target that is neither that nor a column
// makes the loss NaN; a call from Python on a CPU refuses it.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct CrossEntropy {
  Tensor logits;              // [M, V]
  Tensor target;              // i32 or i64 [M]
  Tensor loss;                // f32 [M]
  Tensor lse;                 // f32 [M], of ignored rows too
  i32 ignore_index = -100;    // a target that counts for nothing
  float label_smoothing = 0;  // 0 to 1: the part of the loss that all columns share
  float softcap = 0;          // 0: none
  float z_loss = 0;           // weight of lse^2; 0: none

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("logits", s.logits, "M, V");
    v.read("target", s.target, "M", "i32 | i64");
    v.write("loss", s.loss, "M", "f32");
    v.write("lse", s.lse, "M", "f32");
    v.attribute("ignore_index", s.ignore_index);
    v.attribute("label_smoothing", s.label_smoothing);
    v.attribute("softcap", s.softcap);
    v.attribute("z_loss", s.z_loss);
  }
};

}  // namespace heddle
