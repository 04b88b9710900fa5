// The rules that rope_rows and its gradient share, and how they run as whole kernels (turn_rows.cuh). `from` is turned, `to` is
// what is written.
#pragma once

#include <vector>

#include <fmt/format.h>

#include "heddle/ir/cases.h"
#include "heddle/ir/rules.h"
#include "heddle/kit/rows/row_kernel.h"

namespace heddle {

// `name` and `made`: what the op calls `from` and `to`.
template <class Args>
void infer_turned_rows(const char* op, const Args& a, const char* name, const Tensor& from, const char* made,
                       Tensor& to) {
  require_rank(op, name, from, 2);
  require_float(op, name, from);
  require(a.rotary_dim > 0 && a.rotary_dim % 2 == 0 && a.rotary_dim <= a.head_dim,
          "[{}] rotary_dim = {}, head_dim = {}; rotary_dim must be even, positive and at most head_dim", op,
          a.rotary_dim, a.head_dim);
  require(a.heads > 0 && i64(a.heads) * a.head_dim <= from.last(),
          "[{0}] heads = {1} of {2} elements, {3} is {4}; heads must be positive and lie in {3}", op, a.heads,
          a.head_dim, name, shape_text(from));
  require_shape(op, "table", a.table, {from.size[0], a.rotary_dim});
  require_dtype(op, "table", a.table, DType::kF32);
  set_output(op, made, to, from.dtype, {from.size[0], from.last()});
}

// Calls f(first, second, angle) for the places of each pair, and of its cosine, which the sine follows.
template <class Args, class F>
void each_turned_pair(const Args& a, const Tensor& from, F&& f) {
  const i32 pairs = a.rotary_dim / 2, next = a.interleaved ? 2 : 1, partner = a.interleaved ? 1 : pairs;
  for (i32 m = 0; m < from.size[0]; ++m)
    for (i32 head = 0; head < a.heads; ++head)
      for (i32 i = 0; i < pairs; ++i) {
        const size_t first = size_t(m) * size_t(from.last()) + size_t(head * a.head_dim + next * i);
        f(first, first + size_t(partner), size_t(m * a.rotary_dim + 2 * i));
      }
}

// Cases of either op, whose tensor `from` is turned. bound(dtype) is the case's.
template <class Args, class Bound>
std::vector<Case> turned_rows_cases(Tensor Args::*from, Bound&& bound) {
  std::vector<Case> cases;
  // {head_dim, rotary_dim, rotated heads, all columns}: whole heads, a part of each, and further columns after the heads.
  for (auto [head_dim, rotary_dim, heads, columns] :
       {std::array{2, 2, 1, 2}, {64, 64, 3, 256}, {24, 10, 2, 100}, {80, 32, 4, 320}})
    for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
      for (i32 interleaved : {0, 1})
        for (i32 rows : {1, 19}) {
          Args args{.table = input(DType::kF32, {rows, rotary_dim}),
                    .head_dim = head_dim,
                    .rotary_dim = rotary_dim,
                    .heads = heads,
                    .interleaved = interleaved};
          args.*from = input(type, {rows, columns});
          cases.push_back(make_case(args, bound(type)));
        }
  return cases;
}

template <class Args>
RowWork turned_rows(const Args& a, const Tensor& from, const Tensor& to) {
  RowWork work{.matrices = {&from, &to, &a.table}, .adds_up = false};
  const i32 unit = a.interleaved ? 8 : 16;  // elements that turn together
  if (a.head_dim % 8 != 0 || a.rotary_dim % unit != 0)
    work.misfit =
        fmt::format("heads of {} elements, of which {} turn, are not cut into multiples of 8 and {}",
                    a.head_dim, a.rotary_dim, unit);
  const i32 rest = from.last() - a.heads * a.head_dim;
  work.row_units =
      a.interleaved ? from.last() / 8 : a.heads * (a.head_dim / 8 - a.rotary_dim / 16) + rest / 8;
  constexpr i64 kMost = 1ll << 31;  // the kernel counts in i32
  if (i64(from.size[0]) * work.row_units >= kMost) work.misfit = "there are too many rows for 32-bit numbers";
  return work;
}

}  // namespace heddle
