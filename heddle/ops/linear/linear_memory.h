// Shared memory and roles of linear_kernel.sm90.cuh, for kernel and plan.
// Read by host and device: no standard headers.
#pragma once

#include "heddle/tile/budget.h"
#include "heddle/tile/mma_plan.h"

namespace heddle::linear {

// A CTA has two groups of four warps, each with 64 columns, and so many rows of x that the plan chooses.
constexpr i32 kGroups = 2, kColumns = 64 * kGroups;

// Slabs of 64 k of 16 bits: rows of x, and of a group's panels the parts of 128 bytes.
constexpr tile::OperandTile slab_tile(i32 rows) {
  return {rows, 64, 2};
}
// A group's panels of codes: a line of each, of 64 k of FP8 or 128 of int4.
constexpr tile::OperandTile coded_tile() {
  return {32, 128, 1};
}
// The part of y that a group stores at once, of the rows whose sums it finishes. `fold`: columns that make one of y.
constexpr tile::OperandTile stored_tile(i32 own_rows, i32 fold, i32 out_bytes) {
  const i32 row = 64 / fold * out_bytes;
  return {own_rows < 64 ? own_rows : 64, 64 / fold, out_bytes, tile::Major::kK, row < 128 ? row : 128};
}
// Such parts that take turns.
constexpr i32 stored_turns(i32 fold, i32 out_bytes) {
  return 64 / fold * out_bytes > 128 ? 1 : 2;
}

constexpr i32 kPlaceBytes = 8;  // what epilogues need for a row

// A kernel is compiled for these.
struct KernelSizes {
  i32 rows, split;      // rows of a tile; parts of k, each in a CTA of its own
  i32 fold, out_bytes;  // columns that make one of y; bytes of an element of y
  bool coded;           // w has codes
  i32 stages;           // slabs in flight

  constexpr i32 own_rows() const { return rows / split; }
  constexpr tile::Budget budget() const {
    const i32 slab = slab_tile(rows).bytes() + kGroups * (coded ? coded_tile() : slab_tile(64)).bytes();
    const i32 stored = stored_turns(fold, out_bytes) * stored_tile(own_rows(), fold, out_bytes).bytes();
    return tile::Budget{}
        .role("bring", 4, 40)
        .role("multiply", 4 * kGroups, 232)
        .part("ring", stages * slab, 1024)
        .part("stored", kGroups * stored, 1024)
        .part("sums", kGroups * 128 * (rows - own_rows()) / 2 * 4)  // from other CTAs
        .barriers("of ring", 2 * stages)
        .barriers("of sums", split > 1 ? 2 * kGroups : 0)
        .part("places", rows * kPlaceBytes);
  }
};

}  // namespace heddle::linear
