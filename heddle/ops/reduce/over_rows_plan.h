// Plans of whole kernels that reduce the rows of x [G, M, D] (over_rows.h).
#pragma once

#include <cstddef>

#include "heddle/ir/op.h"

namespace heddle {

struct RowsWork {
  Tensor x;  // [G, M, D]
  Tensor y;  // its dtype counts
  i32 kind;
  i64 state_bytes = 4;    // elements are reduced to so many
  bool is_result = true;  // it is stored by the last launch, and not read by another one
  bool is_alone = false;  // G is always 1
};
using RowsWorkRule = RowsWork (*)(const std::byte* args);

// The launches "Kernel", and "Finish" where parts are added up; these are [G, parts, D] in the workspace.
KernelPlan plan_over_rows(const RowsWork& work, const KernelTarget& target, const OpConfig& wanted);
std::vector<OpConfig> over_rows_configs(const RowsWork& work, const KernelTarget& target);

// Adds a launch to a plan, or says why it has too many CTAs.
void add_launch(KernelPlan& plan, const char* name, i64 grid, i32 threads);

// Gives an op its kernel and the kernel's configurations: threads of a CTA, and words that a thread loads at once.
void set_over_rows_kernel(OpSpec& op, RowsWorkRule rule);

}  // namespace heddle
