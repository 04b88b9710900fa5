// Causal attention with grouped heads over pages, split over the KV range: what one split knows of its rows. It may
// slide: then a row sees the last `window` positions.
// Positions before this step are read from the pages, those of this step from the rows of qkv, rounded as the
// pages round them: how a prompt was cut into steps does not change what later steps see.
// A tile is (kv head, row block, split) of the attention plan in ir/step.h; attention_merge joins the splits.
#pragma once

#include "heddle/ir/step.h"
#include "heddle/ir/tensor.h"

namespace heddle {

struct Attention {
  Tensor step;    // u8 [bytes], the host part of the step record
  Tensor state;   // u8 [bytes], the device part
  Tensor qkv;     // [M, N]: query heads in the first columns, keys and values in columns of their own
  Tensor keys;    // [pages, kv_heads, page_size, head_dim]
  Tensor values;  // the same
  Tensor part;    // f32 [M, heads, splits, head_dim]: sum of values weighed by exp(score - max)
  Tensor stats;   // f32 [M, heads, splits, 2]: max of the scores, sum of exp(score - max)
  i32 heads = 0;
  i32 kv_heads = 0;
  i32 head_dim = 0;
  i32 key_column = 0;
  i32 value_column = 0;
  float scale = 1;    // of the scores
  float softcap = 0;  // c: scores become c tanh(score / c); 0: they stay
  i32 window = 0;     // positions that a row sees, itself and those before it; 0: all
  i32 block_rows = 1;
  i32 max_blocks = 1;
  i32 max_splits = 1;
  i32 split_unit = 256;

  AttentionCut cut() const { return {block_rows, max_blocks, max_splits, split_unit, window}; }

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("step", s.step, ".");
    v.read("state", s.state, ".");
    v.read("qkv", s.qkv, "M, N");
    v.read("keys", s.keys, "P, G, S, D");
    v.read("values", s.values, "P, G, S, D");
    v.write("part", s.part, "M, H, C, D");
    v.write("stats", s.stats, "M, H, C, .");
    v.attribute("heads", s.heads);
    v.attribute("kv_heads", s.kv_heads);
    v.attribute("head_dim", s.head_dim);
    v.attribute("key_column", s.key_column);
    v.attribute("value_column", s.value_column);
    v.attribute("scale", s.scale);
    v.attribute("softcap", s.softcap);
    v.attribute("window", s.window);
    v.attribute("block_rows", s.block_rows);
    v.attribute("max_blocks", s.max_blocks);
    v.attribute("max_splits", s.max_splits);
    v.attribute("split_unit", s.split_unit);
  }
};

}  // namespace heddle
