// Causal attention with grouped heads over pages, split over the KV range: what one split knows of its rows. It may
// slide: then a row sees the last `window` positions.
// Positions before this step are read from the pages, those of this step from k and v, rounded as the pages round
// them: how a prompt was cut into steps does not change what later steps see.
// Latent attention (DeepSeek-AI, 2024: "DeepSeek-V2"): queries have a second part that meets the values, which stand
// for keys and values of all heads: a score is q k + latent v.
// Scores may have a bias of each head and position, such as that of ALiBi (Press et al., 2022: "Train Short, Test Long").
// A tile is (block of heads, row block, split) of the attention plan (ir/attention_plan.h); attention_merge joins the splits.
#pragma once

#include "heddle/ir/attention_plan.h"
#include "heddle/ir/tensor.h"

namespace heddle {

struct Attention {
  static constexpr float kLowest = -3e38f;  // the best score of a row that sees no position

  Tensor step;    // u8 [bytes], the host part of the step record
  Tensor state;   // u8 [bytes], the device part
  Tensor q;       // [M, heads * head_dim]
  Tensor latent;  // optional [M, heads * value_dim]
  Tensor k;       // [M, kv_heads * head_dim]
  Tensor v;       // [M, kv_heads * value_dim]
  Tensor keys;    // [pages, kv_heads, page_size, head_dim]
  Tensor values;  // [pages, kv_heads, page_size, value_dim]
  Tensor
      bias;  // optional f32 [heads, positions]: added to a head's capped scores, at least `chunk` after the last
  Tensor
      part;  // [M, heads, splits, value_dim]: mean of values weighed by exp(score - max); 0 without positions
  Tensor stats;  // f32 [M, heads, splits, 2]: max of the scores, sum of exp(score - max)
  i32 heads = 0;
  i32 kv_heads = 0;
  i32 block_heads = 1;  // query heads of a tile, all of one kv head
  float scale = 1;      // factor of the scores
  float softcap = 0;    // c: scores become c tanh(score / c); 0: they stay
  i32 window = 0;       // positions that a row sees, itself and those before it; 0: all
  i32 block_rows = 1;
  i32 max_blocks = 1;
  i32 max_splits = 1;
  i32 split_unit = 256;
  i32 chunk = 64;  // positions that are on chip at a time
  i32 joins =
      0;  // 1: a tile makes all splits of its rows and joins them, with the bits of attention_merge; C is 1

  i32 head_dim() const { return keys.size[3]; }
  i32 value_dim() const { return values.size[3]; }
  bool is_latent() const { return latent.rank > 0; }
  bool has_bias() const { return bias.rank > 0; }
  i32 score_dim() const { return head_dim() + (is_latent() ? value_dim() : 0); }
  i32 group() const { return heads / kv_heads; }
  i32 kv_head(i32 head_block) const { return head_block * block_heads / group(); }
  i32 split_tiles() const { return joins != 0 ? 1 : max_splits; }
  AttentionCut cut() const { return {block_rows, max_blocks, max_splits, split_unit, window}; }

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("step", s.step, ".", "u8");
    v.read("state", s.state, ".", "u8");
    v.read("q", s.q, "M, .");
    v.optional_read("latent", s.latent, "M, .");
    v.read("k", s.k, "M, .");
    v.read("v", s.v, "M, .");
    v.read("keys", s.keys, "P, G, S, D");
    v.read("values", s.values, "P, G, S, E");
    v.optional_read("bias", s.bias, "H, .", "f32");
    v.write("part", s.part, "M, H, C, E");
    v.write("stats", s.stats, "M, H, C, .", "f32");
    v.attribute("heads", s.heads);
    v.attribute("kv_heads", s.kv_heads);
    v.attribute("block_heads", s.block_heads);
    v.attribute("scale", s.scale);
    v.attribute("softcap", s.softcap);
    v.attribute("window", s.window);
    v.attribute("block_rows", s.block_rows);
    v.attribute("max_blocks", s.max_blocks);
    v.attribute("max_splits", s.max_splits);
    v.attribute("split_unit", s.split_unit);
    v.attribute("chunk", s.chunk);
    v.attribute("joins", s.joins);
  }
};

}  // namespace heddle
