// y = x w^T where each row of y, an *entry*, has the matrix of the expert that it chose. Entry n of token t is row
// t C + n, C choices a token. Epilogues make a chain around it that look at nothing but the fragment's columns.
//
// Tiles are slots of experts: as many as there are experts where entries may need them all, else as many as there
// are entries, and then the first entry of an expert stands for all of its entries. A slot that no entry takes is dead
// and draws nothing.
#pragma once

#include "heddle/ir/step.h"
#include "heddle/ir/tensor.h"

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
