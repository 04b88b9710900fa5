// Plans of whole kernels that reduce the rows of x [G, M, D] (over_rows.h).
#pragma once

#include <cstddef>

#include "heddle/ir/op.h"

namespace heddle {

struct RowsWork {
  Tensor x;  // [G, M, D]
  Tensor y;  // its dtype counts
  i32 kind;
};
using RowsWorkRule = RowsWork (*)(const std::byte* args);

// Gives an op its kernel and the kernel's configurations: threads of a CTA, and words that a thread loads at once.
void set_over_rows_kernel(OpSpec& op, RowsWorkRule rule);

}  // namespace heddle
