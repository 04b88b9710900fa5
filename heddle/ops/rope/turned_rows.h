// How rope and its gradient run as whole kernels (turn_rows.cuh).
#pragma once

#include <fmt/format.h>

#include "heddle/ir/row_kernel.h"

namespace heddle {

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
