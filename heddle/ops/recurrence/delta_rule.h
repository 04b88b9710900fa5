// The gated delta rule over a step's rows (Yang et al., 2024: "Gated Delta Networks"). Each head has a state S [V, K], by rows what
// it answers to a key; with unit vectors k and q of a row, decay = exp(-exp(rate) softplus(a + bias)) and beta = sigmoid(b):
//   S = decay S + beta (v - decay S k) k^T,  y = S q / sqrt(K)
// After position p of a sequence its state is in `memory` at 2 * slot + p % 2, so that a step may be run again.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct DeltaRule {
  Tensor step;        // u8 [bytes], the host part of the step record
  Tensor state;       // u8 [bytes], the device part
  Tensor x;           // [M, N]: queries and keys of all key heads, then values of all heads
  Tensor gates;       // [M, 2H]: b of all heads, then a
  Tensor rate;        // f32 [H]
  Tensor bias;        // f32 [H]
  Tensor memory;      // f32 [2 * slots, H, V, K]
  Tensor y;           // [M, H * V]
  i32 key_heads = 1;  // each is that of H / key_heads neighbours
  i32 sequences = 1;  // a step has so many at most
  float eps = 1e-6f;  // added to the squares of keys and queries

  i32 heads() const { return memory.size[1]; }
  i32 value_dim() const { return memory.size[2]; }
  i32 key_dim() const { return memory.size[3]; }
  i32 key_head(i32 head) const { return head / (heads() / key_heads); }
  i32 query_column(i32 head) const { return key_head(head) * key_dim(); }
  i32 key_column(i32 head) const { return (key_heads + key_head(head)) * key_dim(); }
  i32 value_column(i32 head) const { return 2 * key_heads * key_dim() + head * value_dim(); }

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("step", s.step, ".", "u8");
    v.read("state", s.state, ".", "u8");
    v.read("x", s.x, "M, N");
    v.read("gates", s.gates, "M, 2H");
    v.read("rate", s.rate, "H", "f32");
    v.read("bias", s.bias, "H", "f32");
    v.write("memory", s.memory, "S, H, V, K", "f32");
    v.write("y", s.y, "M, Y");
    v.attribute("key_heads", s.key_heads);
    v.attribute("sequences", s.sequences);
    v.attribute("eps", s.eps);
  }
};

}  // namespace heddle
