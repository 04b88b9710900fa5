// The block lists of flash_attention as its gradient by keys needs them: the blocks of queries that list a block of keys.
#pragma once

#include "heddle/ops/flash_attention/attention_blocks.h"

namespace heddle {

struct FlashAttentionQueryBlocks {
  Tensor k;              // [B, T, G, D]: its positions are counted; its elements are not read
  Tensor kv_num_blocks;  // i32 [B or 1, H or 1, Q]
  Tensor kv_indices;     // i32 [B or 1, H or 1, Q, M]
  Tensor q_num_blocks;   // i32 [B or 1, H or 1, K]
  Tensor q_indices;      // i32 [B or 1, H or 1, K, Q]: ascending; 0 after the last
  i32 block_k = 128;     // keys of a block

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("k", s.k, "B, T, G, D");
    v.read("kv_num_blocks", s.kv_num_blocks, "., ., Q", "i32");
    v.read("kv_indices", s.kv_indices, "., ., Q, M", "i32");
    v.write("q_num_blocks", s.q_num_blocks, "., ., K", "i32");
    v.write("q_indices", s.q_indices, "., ., K, Q", "i32");
    v.attribute("block_k", s.block_k);
  }
};

}  // namespace heddle
