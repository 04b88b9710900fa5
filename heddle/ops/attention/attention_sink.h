// Gives each head's sink a share of its attention: a score without a value, which joins the softmax of the first split
// (Xiao et al., 2023: "Efficient Streaming Language Models with Attention Sinks"; OpenAI, 2025: gpt-oss). The op
// stands between attention and its merge, and changes what attention made: give it the first split of `part` and
// `stats`, and these as `y` and `new_stats` again.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct AttentionSink {
  Tensor sinks;      // f32 [heads]: scores
  Tensor part;       // [M, heads, 1, value_dim], as attention makes it
  Tensor stats;      // f32 [M, heads, 1, 2]
  Tensor y;          // [M, heads, 1, value_dim]
  Tensor new_stats;  // f32 [M, heads, 1, 2]

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("sinks", s.sinks, "H", "f32");
    v.read("part", s.part, "M, H, C, D");
    v.read("stats", s.stats, "M, H, C, .", "f32");
    v.write("y", s.y, "M, H, C, D");
    v.write("new_stats", s.new_stats, "M, H, C, .", "f32");
  }
};

}  // namespace heddle
