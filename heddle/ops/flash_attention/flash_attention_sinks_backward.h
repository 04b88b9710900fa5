// The gradient of flash_attention by its sinks: of each head less the sum of exp(sink - lse) delta over all queries.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct FlashAttentionSinksBackward {
  Tensor sinks;   // [H]
  Tensor lse;     // f32 [B, H, S]
  Tensor delta;   // f32 [B, H, S], from flash_attention_delta
  Tensor dsinks;  // [H]

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("sinks", s.sinks, "H");
    v.read("lse", s.lse, "B, H, S", "f32");
    v.read("delta", s.delta, "B, H, S", "f32");
    v.write("dsinks", s.dsinks, "H");
  }
};

}  // namespace heddle
