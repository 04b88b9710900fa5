// y = x w^T, where each row of y, an *entry* (a token and one of its experts), uses the matrix of its expert.
// Entry n of token t is row t C + n, with C choices per token. Epilogues in its chain may look only at the
// fragment's columns.
//
// A tile is a *slot*. There are as many slots as experts or, if these are fewer, as many as entries; then the
// first entry of an expert stands for all of its entries. Each tile finds its expert and its entries in
// `choice` (op route), so one program serves every choice, and so does its proof: all slots may write any row
// of y, and `reference` checks that no two write the same. A slot without entries is dead and loads nothing.
// All workers share the rows of every expert. A GPU's loader waits until its consumers have the routes before
// it loads panels (OpTraits::streams_by_data).
#pragma once

#include "heddle/ir/step.h"
#include "heddle/ir/weight.h"

namespace heddle {

struct ExpertLinear {
  Tensor step;    // u8 [bytes], the host part of the step record
  Tensor choice;  // i32 [T, C]: experts
  Tensor x;       // [T, K]: a row for each token, or [T C, K]: for each entry
  Weight w;       // [N, K] of each expert
  Tensor y;       // [T C, N]; what the last epilogue leaves

  i32 entries() const { return choice.size[0] * choice.last(); }
  i32 slots() const { return entries() < w.matrices ? entries() : w.matrices; }
  // A slot's rows of the tiling: as many of its entries are multiplied at a time.
  i32 slot_rows() const { return choice.size[0] < 256 ? choice.size[0] : 256; }
  i32 entries_per_row() const { return entries() / x.size[0]; }

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("step", s.step, ".", "u8");
    v.read("choice", s.choice, "T, C", "i32");
    v.read("x", s.x, "X, K");
    v.weight("w", s.w, "N, K");
    v.write("y", s.y, "Y, N");
  }
};

}  // namespace heddle
