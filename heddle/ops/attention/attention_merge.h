// Joins the splits of attention, in ascending order: y = the mean of the parts, each weighed by its total times
// exp(its max - the largest max). Which splits of a row are live follows from the attention plan.
#pragma once

#include "heddle/ir/attention_plan.h"
#include "heddle/ir/tensor.h"

namespace heddle {

struct AttentionMerge {
  Tensor step;   // u8 [bytes], the host part of the step record
  Tensor state;  // u8 [bytes], the device part
  Tensor part;   // [M, heads, splits, head_dim]
  Tensor stats;  // f32 [M, heads, splits, 2]
  Tensor y;      // [M, heads * head_dim]
  i32 block_rows = 1;
  i32 max_blocks = 1;
  i32 max_splits = 1;
  i32 split_unit = 256;
  i32 window = 0;

  AttentionCut cut() const { return {block_rows, max_blocks, max_splits, split_unit, window}; }

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("step", s.step, ".", "u8");
    v.read("state", s.state, ".", "u8");
    v.read("part", s.part, "M, H, C, D");
    v.read("stats", s.stats, "M, H, C, .", "f32");
    v.write("y", s.y, "M, .");
    v.attribute("block_rows", s.block_rows);
    v.attribute("max_blocks", s.max_blocks);
    v.attribute("max_splits", s.max_splits);
    v.attribute("split_unit", s.split_unit);
    v.attribute("window", s.window);
  }
};

}  // namespace heddle
