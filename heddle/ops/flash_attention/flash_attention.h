// Attention of whole sequences in one pass over the keys (Dao et al., 2022: "FlashAttention"), called by itself. Tensors lie
// as [batch, position, head, element], with any strides: those of torch's scaled_dot_product_attention are
// x.transpose(1, 2).
//   x = scale q k;  x = softcap tanh(x / softcap);  x += bias - slope |p - j|
//   y = sum over the keys j that the query sees of softmax(x)_j v_j
//   lse = log of the sum of exp(x); a sink is one more term of that sum, without a value
// Which keys a query sees: attention_mask.h. A query that sees none gets y = 0 and lse = -inf (its sink, if there is one).
// A score below -1e38 counts as unseen, so a bias may hold -inf or the lowest finite value.
// y_in and lse_in are what a call has given for the same queries and other keys: y and lse are then those of all these keys. An
// earlier result counts as one more key, with the score lse_in and the value y_in; where lse_in is -inf there was none.
// Block lists: queries in blocks of block_q see the keys in those blocks of block_k that their list names, and that the mask lets
// them see. Block i of the queries of a head names kv_num_blocks[i] blocks of keys, each once, in any order: the first so many of
// kv_indices[i]. The same as FlexAttention's BlockMask, with all blocks in one list.
// Several sequences of different lengths follow one another, without gaps, in a batch of 1: sequence n has the queries
// [cu_seqlens_q[n], cu_seqlens_q[n + 1]) and the keys [cu_seqlens_k[n], cu_seqlens_k[n + 1]).
#pragma once

#include "heddle/ops/flash_attention/attention_blocks.h"

namespace heddle {

struct FlashAttention {
  Tensor q;               // [B, S, H, D]
  Tensor k;               // [B, T, G, D]; H is a multiple of G
  Tensor v;               // [B, T, G, E]
  Tensor bias;            // optional [B or 1, H or 1, S, T]
  Tensor sinks;           // optional [H]
  Tensor alibi_slopes;    // optional f32 [H]
  Tensor cu_seqlens_q;    // optional i32 [N + 1]
  Tensor cu_seqlens_k;    // i32 [N + 1]; with cu_seqlens_q
  Tensor y_in;            // optional [B, S, H, E], of any float
  Tensor lse_in;          // f32 [B, H, S]; with y_in
  Tensor kv_num_blocks;   // optional i32 [B or 1, H or 1, Q]
  Tensor kv_indices;      // i32 [B or 1, H or 1, Q, M]; with kv_num_blocks
  Tensor y;               // [B, S, H, E]
  Tensor lse;             // f32 [B, H, S]
  float scale = 0;        // 0: 1 / sqrt(D)
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
    v.optional_read("bias", s.bias, "., ., S, T");
    v.optional_read("sinks", s.sinks, "H");
    v.optional_read("alibi_slopes", s.alibi_slopes, "H", "f32");
    v.optional_read("cu_seqlens_q", s.cu_seqlens_q, "N", "i32");
    v.optional_read("cu_seqlens_k", s.cu_seqlens_k, "N", "i32");
    v.optional_read("y_in", s.y_in, "B, S, H, E");
    v.optional_read("lse_in", s.lse_in, "B, H, S", "f32");
    v.optional_read("kv_num_blocks", s.kv_num_blocks, "., ., Q", "i32");
    v.optional_read("kv_indices", s.kv_indices, "., ., Q, M", "i32");
    v.write("y", s.y, "B, S, H, E");
    v.write("lse", s.lse, "B, H, S", "f32");
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
