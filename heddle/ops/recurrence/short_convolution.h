// A causal convolution of each column by itself: y = f(bias + sum over the last W positions of weight * x), as Mamba has it before
// its state. Inputs of earlier steps are in `memory`, where position p of a sequence has place p % W of its slot.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct ShortConvolution {
  Tensor step;         // u8 [bytes], the host part of the step record
  Tensor state;        // u8 [bytes], the device part
  Tensor x;            // [M, N]
  Tensor weight;       // f32 [W, N]; the last row multiplies a position itself
  Tensor bias;         // optional f32 [N]
  Tensor memory;       // [slots, W, N]
  Tensor y;            // [M, N]
  i32 sequences = 1;   // a step has so many at most
  i32 activation = 0;  // f: none, silu

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("step", s.step, ".", "u8");
    v.read("state", s.state, ".", "u8");
    v.read("x", s.x, "M, N");
    v.read("weight", s.weight, "W, N", "f32");
    v.optional_read("bias", s.bias, "N", "f32");
    v.write("memory", s.memory, "S, W, N");
    v.write("y", s.y, "M, N");
    v.attribute("sequences", s.sequences);
    v.choice("activation", s.activation, "none, silu");
  }
};

}  // namespace heddle
