// The gradient of flash_attention by its bias: ds = p (dy v - delta), as flash_attention_backward has it, summed over the
// batches and heads that share a bias, in their order.
#pragma once

#include "heddle/ops/flash_attention/attention_blocks.h"

namespace heddle {

struct FlashAttentionBiasBackward {
  Tensor q;               // [B, S, H, D]
  Tensor k;               // [B, T, G, D]
  Tensor v;               // [B, T, G, E]
  Tensor bias;            // [B or 1, H or 1, S, T]
  Tensor alibi_slopes;    // optional f32 [H]
  Tensor kv_num_blocks;   // optional i32 [B or 1, H or 1, Q], with kv_indices
  Tensor kv_indices;      // i32 [B or 1, H or 1, Q, M]
  Tensor dy;              // [B, S, H, E]
  Tensor lse;             // f32 [B, H, S]
  Tensor delta;           // f32 [B, H, S]
  Tensor dbias;           // as bias
  float scale = 0;        // this and what follows as in flash_attention
  bool causal = false;    // a query sees no key after its own
  i32 window_left = -1;   // keys before its own that a query sees; -1: all
  i32 window_right = -1;  // keys after its own; -1: all
  float softcap = 0;      // 0: none
  i32 q_offset = 0;       // queries stand this much later
  i32 block_q = 128;      // queries of a block that has a list
  i32 block_k = 128;      // keys of a block in a list

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("q", s.q, "B, S, H, D");
    v.read("k", s.k, "B, T, G, D");
    v.read("v", s.v, "B, T, G, E");
    v.read("bias", s.bias, "., ., S, T");
    v.optional_read("alibi_slopes", s.alibi_slopes, "H", "f32");
    v.optional_read("kv_num_blocks", s.kv_num_blocks, "., ., Q", "i32");
    v.optional_read("kv_indices", s.kv_indices, "., ., Q, M", "i32");
    v.read("dy", s.dy, "B, S, H, E");
    v.read("lse", s.lse, "B, H, S", "f32");
    v.read("delta", s.delta, "B, H, S", "f32");
    v.write("dbias", s.dbias, "., ., S, T");
    v.attribute("scale", s.scale);
    v.attribute("causal", s.causal);
    v.attribute("window_left", s.window_left);
    v.attribute("window_right", s.window_right);
    v.attribute("softcap", s.softcap);
    v.attribute("q_offset", s.q_offset);
    v.attribute("block_q", s.block_q);
    v.attribute("block_k", s.block_k);
  }
};

}  // namespace heddle
