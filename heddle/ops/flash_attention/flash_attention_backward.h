// The gradient of flash_attention by its queries, keys and values. With p = exp(x - lse) for the score x of a query and a key,
// slope = 1 - tanh(.)^2 of the cap, and delta from flash_attention_delta:
//   ds = p (dy v - delta);  dv = sum of p dy;  dq = scale * sum of ds slope k;  dk = scale * sum of ds slope q
// Every sum has one order: the same inputs give the same bits.
#pragma once

#include "heddle/ops/flash_attention/attention_blocks.h"
#include "heddle/ops/flash_attention/attention_memory.h"

namespace heddle {

struct FlashAttentionBackward {
  Tensor q;               // [B, S, H, D]
  Tensor k;               // [B, T, G, D]
  Tensor v;               // [B, T, G, E]
  Tensor bias;            // optional [B or 1, H or 1, S, T]
  Tensor alibi_slopes;    // optional f32 [H]
  Tensor cu_seqlens_q;    // optional i32 [N + 1]
  Tensor cu_seqlens_k;    // i32 [N + 1]; with cu_seqlens_q
  Tensor kv_num_blocks;   // optional i32 [B or 1, H or 1, Q], with kv_indices
  Tensor kv_indices;      // i32 [B or 1, H or 1, Q, M]
  Tensor q_num_blocks;    // i32 [B or 1, H or 1, K], from flash_attention_query_blocks
  Tensor q_indices;       // i32 [B or 1, H or 1, K, Q]
  Tensor dy;              // [B, S, H, E]
  Tensor lse;             // f32 [B, H, S]
  Tensor delta;           // f32 [B, H, S]
  Tensor dq;              // [B, S, H, D]
  Tensor dk;              // [B, T, G, D]
  Tensor dv;              // [B, T, G, E]
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
    v.optional_read("bias", s.bias, "., ., S, T");
    v.optional_read("alibi_slopes", s.alibi_slopes, "H", "f32");
    v.optional_read("cu_seqlens_q", s.cu_seqlens_q, "N", "i32");
    v.optional_read("cu_seqlens_k", s.cu_seqlens_k, "N", "i32");
    v.optional_read("kv_num_blocks", s.kv_num_blocks, "., ., Q", "i32");
    v.optional_read("kv_indices", s.kv_indices, "., ., Q, M", "i32");
    v.optional_read("q_num_blocks", s.q_num_blocks, "., ., K", "i32");
    v.optional_read("q_indices", s.q_indices, "., ., K, Q", "i32");
    v.read("dy", s.dy, "B, S, H, E");
    v.read("lse", s.lse, "B, H, S", "f32");
    v.read("delta", s.delta, "B, H, S", "f32");
    v.write("dq", s.dq, "B, S, H, D");
    v.write("dk", s.dk, "B, T, G, D");
    v.write("dv", s.dv, "B, T, G, E");
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

// The workspace of its whole kernel (flash_attention_backward_kernel.sm90.cuh).

// Rows of one side in tiles. Sequences have tiles of their own (Parts in attention_parts_kernel.sm90.cuh).
inline i32 attention_tiles(i32 rows, i32 tile_rows, const Tensor& starts) {
  return starts.rank > 0 ? rows / tile_rows + starts.size[0] + 1 : (rows + tile_rows - 1) / tile_rows;
}

// Bytes from its begin:
//   turns   u32 [B, H, steps]: how many CTAs have added to a step's dq; zero at first
//   rows    f32 [B, H, steps, 2, 64]: lse times log2 e, infinite for rows that are not there or see nothing; delta
//   dq      f32 [B, H, steps, 2, 64 * dim / 2], each half in the order of a product's sums
//   later   with block lists, u32 [lists, tiles + 1]: how many CTAs' keys a list names from each tile on
//   named   u32 [lists, tiles + 1]: 1 for the keys of each CTA that a list names
//   sums    where heads are split, f32 [B, G, splits, tiles, keys * dim * 2]: dk and dv of each split
struct AttentionRoom {
  i32 steps;      // a head has
  i32 tiles;      // keys have
  i64 lists;      // blocks of queries that have one
  i64 later_row;  // bytes
  i64 rows, dq, later, named, sums;

  AttentionRoom(const FlashAttentionBackward& a, i32 dim)
      : steps(attention_tiles(a.q.size[1], kStepQueries, a.cu_seqlens_q)),
        tiles(attention_tiles(a.k.size[1], block_keys(dim), a.cu_seqlens_k)),
        lists(0),
        later_row(4 * (i64(blocks_of(a.k.size[1], block_keys(dim))) + 1)) {
    const i64 all = i64(a.q.size[0]) * a.q.size[2] * steps, row = kStepQueries * 4;
    if (a.kv_num_blocks.rank > 0)
      lists = i64(a.kv_num_blocks.size[0]) * a.kv_num_blocks.size[1] * a.kv_num_blocks.size[2];
    rows = (all * 4 + 255) / 256 * 256;
    dq = rows + 2 * all * row;
    later = dq + all * row * dim;
    named = later + lists * later_row;
    sums = named + lists * later_row;
  }
  i64 bytes(const FlashAttentionBackward& a, i32 dim, i32 splits) const {
    return sums +
           (splits == 1 ? 0 : i64(a.k.size[0]) * a.k.size[2] * splits * tiles * block_keys(dim) * dim * 8);
  }
};

// CTAs that have the same keys, each for as many of the heads that share them: the number that fills the waves of a GPU best. It follows
// from sizes alone, and so do the sums.
inline i32 splits_of_heads(const FlashAttentionBackward& a, const AttentionRoom& room) {
  constexpr i32 kProcessors = 132, kSurely = 8;  // an eighth of the time must be gained
  constexpr i32 kCta = 3, kJoin = 3;  // in steps: what a CTA takes besides, and with splits; on an H200
  if (a.kv_num_blocks.rank > 0 || a.cu_seqlens_k.rank > 0) return 1;  // not measured
  constexpr i64 kMany = 1 << 20;
  const i64 all = i64(room.tiles) * a.k.size[0] * a.k.size[2];
  if (all > kMany) return 1;
  const i32 ctas = i32(all), heads = a.q.size[2] / a.k.size[2];
  i64 alone = 0, least = 0;
  i32 best = 1;
  for (i32 splits = 1; splits <= heads; ++splits) {
    if (heads % splits != 0) continue;
    const i64 waves = (ctas * splits + kProcessors - 1) / kProcessors;
    const i64 cost = waves * (heads / splits * room.steps + kCta + (splits > 1 ? kJoin : 0));
    if (splits == 1) alone = cost;
    if (splits == 1 || cost < least) least = cost, best = splits;
  }
  return least * kSurely < alone * (kSurely - 1) ? best : 1;
}

}  // namespace heddle
