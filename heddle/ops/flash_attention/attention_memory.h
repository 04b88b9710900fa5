// Shared memory and roles of this family's whole kernels, for kernel and plan.
// Read by host and device: no standard headers.
#pragma once

#include "heddle/tile/budget.h"
#include "heddle/tile/mma_plan.h"

namespace heddle {

// Rows of a head on chip, filled up with zeros to blocks of 64 elements: a bulk copy brings a block, and wgmma reads it.
constexpr tile::OperandTile head_tile(i32 rows, i32 dim) {
  return {.rows = rows, .depth = (dim + 63) / 64 * 64, .element_bytes = 2};
}

namespace flash_attention {

constexpr tile::Budget kernel_budget(i32 dim, i32 value_dim, i32 groups, i32 keys, i32 stages) {
  return tile::Budget{}
      .role("bring", 4, groups == 2 ? 40 : 32)
      .role("multiply", 4 * groups, groups == 2 ? 232 : 160)
      .part("queries", head_tile(64 * groups, dim).bytes(), 1024)
      .part("keys", stages * head_tile(keys, dim).bytes(), 1024)
      .part("values", stages * head_tile(keys, value_dim).bytes(), 1024)
      .barriers("of keys", 2 * stages)
      .barriers("of values", 2 * stages)
      .barriers("full", 1)
      .barriers("empty", 1)
      .part("tiles", 2 * 64)   // one is read while the next is there
      .part("begins", 4 * 4);  // the first key of the block in each slot
}

}  // namespace flash_attention

constexpr i32 kStepQueries = 64;  // a step of the backward kernel has

// Keys of a CTA of the backward kernel: each of two groups of warps has 64, or they share them where heads are wide.
constexpr i32 block_keys(i32 dim) {
  return dim > 128 ? 64 : 128;
}

namespace flash_attention_backward {

// Products of keys and queries, which one group of warps makes and both read.
constexpr tile::OperandTile score_tile(i32 dim) {
  return head_tile(block_keys(dim), kStepQueries);
}
// Columns of dk and dv that a group of warps has: each half of them where groups share keys.
constexpr i32 columns_of(i32 dim) {
  return block_keys(dim) == 64 ? dim / 2 : dim;
}
// CTAs that add up dk and dv of some keys, where heads are split. A thread has as many words of 16 bytes.
constexpr i32 kJoinedWords = 4;
constexpr i32 joining_ctas(i32 dim) {
  return columns_of(dim) / 4 / kJoinedWords;
}
// Slots of the rings of queries and dy, and places on chip for dq of a step.
constexpr i32 stages_of(i32 dim) {
  return block_keys(dim) == 64 ? 1 : 2;
}

constexpr tile::Budget kernel_budget(i32 dim) {
  const i32 keys = head_tile(block_keys(dim), dim).bytes(), queries = head_tile(kStepQueries, dim).bytes();
  const i32 stages = stages_of(dim);
  return tile::Budget{}
      .role("help", 4, dim == 128 ? 24 : 40)
      .role("multiply", 8, dim == 128 ? 240 : 232)
      .part("keys", keys, 1024)
      .part("values", keys, 1024)
      .part("queries", stages * queries, 1024)
      .part("dy", stages * queries, 1024)
      .part("scores", 2 * score_tile(dim).bytes(), 1024)
      .part("dq", stages * kStepQueries * dim * 4, 1024)
      .part("rows", 2 * stages * kStepQueries * 4)  // lse and delta
      .barriers("of queries", 2 * stages)
      .barriers("of dy", 2 * stages)
      .barriers("full", 1)
      .barriers("dq full", 2)
      .barriers("dq empty", 2)
      .part("work", 64, 8)
      .part("steps", (stages + 2) * 16, 8)  // a slot has one, and dq of each draining thread
      .barriers("told", stages);
}

}  // namespace flash_attention_backward
}  // namespace heddle
