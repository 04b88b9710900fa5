// The gradient of flash_attention by the earlier result that it continues: of one more key with the score lse_in and the value y_in.
//   w = exp(lse_in - lse);  dy_in = w dy;  dlse_in = w (dy y_in - delta)
// Both are 0 where lse_in is -inf.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct FlashAttentionEarlierBackward {
  Tensor y_in;     // [B, S, H, E]
  Tensor lse_in;   // f32 [B, H, S]
  Tensor dy;       // [B, S, H, E]
  Tensor lse;      // f32 [B, H, S], with the earlier keys
  Tensor delta;    // f32 [B, H, S], from flash_attention_delta
  Tensor dy_in;    // [B, S, H, E]
  Tensor dlse_in;  // f32 [B, H, S]

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("y_in", s.y_in, "B, S, H, E");
    v.read("lse_in", s.lse_in, "B, H, S", "f32");
    v.read("dy", s.dy, "B, S, H, E");
    v.read("lse", s.lse, "B, H, S", "f32");
    v.read("delta", s.delta, "B, H, S", "f32");
    v.write("dy_in", s.dy_in, "B, S, H, E");
    v.write("dlse_in", s.dlse_in, "B, H, S", "f32");
  }
};

}  // namespace heddle
