// The gradient of reduce_dim: dx[g, m, d] is dy[g, d] for a sum, a part of it for a mean. For a maximum the elements that are the
// largest share it; where one is NaN, all get NaN.
#pragma once

#include "heddle/ops/reduce/over_rows.h"
#include "heddle/ops/reduce/reduce.h"

namespace heddle {

struct ReduceDimBackward {
  Tensor x;               // [G, M, D]; its values count for a maximum alone
  Tensor dy;              // [G, D]
  Tensor dx;              // [G, M, D]
  i32 kind = kReduceSum;  // what is made of a row

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "G, M, D");
    v.read("dy", s.dy, "G, D");
    v.write("dx", s.dx, "G, M, D");
    v.choice("kind", s.kind, kReduceNames);
  }
};

// The whole kernel's cut of a maximum's dx into CTAs. Where D is of words of eight, a thread goes down the
// rows of one; else dx is one row of words, of which a thread has kGradientWords.
struct GradientCut {
  bool in_columns;
  i32 team;     // neighbouring words of a CTA
  i32 at_once;  // rows of them
  i64 blocks;   // CTAs next to each other,
  i64 slabs;    // and below each other
};
constexpr i32 kGradientRows = 16, kGradientWords = 4;

constexpr GradientCut gradient_cut(i32 groups, i32 rows, i32 columns, i32 threads) {
  const i64 words = ceil_div(i64(groups) * rows * columns, 8);
  if (columns % 8 != 0) return {false, threads, 1, ceil_div(words, i64(kGradientWords) * threads), 1};
  i32 at_once = 1;
  while (at_once < 8 && at_once * 2 <= rows) at_once *= 2;
  const i32 team = threads / at_once;
  return {true, team, at_once, ceil_div(i64(groups) * (columns / 8), team),
          ceil_div(rows, i64(at_once) * kGradientRows)};
}

}  // namespace heddle
