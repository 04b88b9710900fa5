// Shared memory and roles of attention_kernel.sm90.cuh, for kernel and plan.
// Read by host and device: no standard headers.
#pragma once

#include "heddle/tile/budget.h"
#include "heddle/tile/mma_plan.h"

namespace heddle::attention {

// Positions of a block. Next to wide sums, registers hold the scores of few.
constexpr i32 block_keys(i32 dim) {
  return dim == 256 ? 32 : 64;
}
// Rows of a head: a CTA's queries, or a block of keys or of values.
constexpr tile::OperandTile head_tile(i32 rows, i32 dim) {
  return {rows, dim, 2};
}

constexpr tile::Budget kernel_budget(i32 dim, i32 groups, i32 stages) {
  const i32 block = head_tile(block_keys(dim), dim).bytes();
  return tile::Budget{}
      .role("bring", 4, groups == 2 ? 72 : 80)
      .role("multiply", 4 * groups, groups == 2 ? 216 : 144)
      .part("queries", head_tile(64 * groups, dim).bytes(), 1024)
      .part("keys", stages * block, 1024)
      .part("values", stages * block, 1024)
      .barriers("of keys", 2 * stages)
      .barriers("of values", 2 * stages)
      .barriers("full", 1)
      .barriers("empty", 1)
      .part("tiles", 2 * 32);  // one is read while the next is there
}

}  // namespace heddle::attention
