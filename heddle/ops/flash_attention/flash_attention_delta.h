// delta = sum of y dy over the elements of a head, less dlse: what all scores of a query have in common in the gradient of
// flash_attention.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct FlashAttentionDelta {
  Tensor y;      // [B, S, H, E]
  Tensor dy;     // [B, S, H, E]
  Tensor dlse;   // optional f32 [B, H, S]
  Tensor delta;  // f32 [B, H, S]

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("y", s.y, "B, S, H, E");
    v.read("dy", s.dy, "B, S, H, E");
    v.optional_read("dlse", s.dlse, "B, H, S", "f32");
    v.write("delta", s.delta, "B, H, S", "f32");
  }
};

}  // namespace heddle
