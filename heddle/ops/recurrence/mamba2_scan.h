// The state space of Mamba-2 over a step's rows (Dao and Gu, 2024: "Transformers are SSMs"). Each head has a state S [P, N]. With
// x and dt of a row's head, B and C of its group, step = softplus(dt + bias) within limits and decay = exp(-exp(rate) step):
//   S = decay S + step x B^T,  y = S C + skip x
// After position p of a sequence its state is in `memory` at 2 * slot + p % 2, so that a step may be run again.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

struct Mamba2Scan {
  Tensor step;        // u8 [bytes], the host part of the step record
  Tensor state;       // u8 [bytes], the device part
  Tensor x;           // [M, X]: x of all heads, then B of all groups, then C
  Tensor dt;          // [M, H]
  Tensor rate;        // f32 [H]: the logarithm of what the paper calls -A
  Tensor bias;        // f32 [H]
  Tensor skip;        // f32 [H]: the paper's D
  Tensor memory;      // f32 [2 * slots, H, P, N]
  Tensor y;           // [M, H * P]
  i32 groups = 1;     // B and C of a group are those of H / groups neighbours
  i32 sequences = 1;  // a step has so many at most
  float least = 0;    // a step is at least this, after softplus
  float most = 0;     // and at most this; 0: no limit

  i32 heads() const { return memory.size[1]; }
  i32 head_dim() const { return memory.size[2]; }
  i32 state_dim() const { return memory.size[3]; }
  i32 value_column(i32 head) const { return head * head_dim(); }
  i32 group(i32 head) const { return head / (heads() / groups); }
  i32 b_column(i32 head) const { return heads() * head_dim() + group(head) * state_dim(); }
  i32 c_column(i32 head) const { return b_column(head) + groups * state_dim(); }

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("step", s.step, ".", "u8");
    v.read("state", s.state, ".", "u8");
    v.read("x", s.x, "M, X");
    v.read("dt", s.dt, "M, H");
    v.read("rate", s.rate, "H", "f32");
    v.read("bias", s.bias, "H", "f32");
    v.read("skip", s.skip, "H", "f32");
    v.write("memory", s.memory, "S, H, P, N", "f32");
    v.write("y", s.y, "M, Y");
    v.attribute("groups", s.groups);
    v.attribute("sequences", s.sequences);
    v.attribute("least", s.least);
    v.attribute("most", s.most);
  }
};

}  // namespace heddle
