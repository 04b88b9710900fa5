// Shared memory and roles of this family's whole kernels on tensor cores, for kernel and plan.
// Read by host and device: no standard headers.
#pragma once

#include "heddle/tile/budget.h"
#include "heddle/tile/mma_plan.h"

namespace heddle {

// Rows of up to 64 elements on chip: a bulk copy brings 64 of them, and wgmma reads them.
constexpr tile::OperandTile box_tile(i32 rows) {
  return {rows, 64, 2};
}
constexpr i32 kBoxBytes = box_tile(64).bytes();

// A CTA's rows, 64 for each group of four warps, stay on chip while blocks of 64 other rows come through a ring.
struct SympowMemory {
  i32 groups;
  i32 row_slots, row_boxes;  // places for rows, and boxes of a group's
  i32 stage_boxes;           // a stage of the ring has
  i32 fact_bytes = 0;        // what else the groups have
};

constexpr tile::Budget sympow_budget(const SympowMemory& memory, i32 stages) {
  const i32 groups = memory.groups;
  return tile::Budget{}
      .role("bring", 4, 40)
      .role("multiply", 4 * groups,
            groups == 2   ? 232
            : groups == 3 ? 152
                          : 104)
      .part("rows", memory.row_slots * groups * memory.row_boxes * kBoxBytes, 1024)
      .part("ring", stages * memory.stage_boxes * kBoxBytes, 1024)
      .part("facts", memory.fact_bytes)
      .barriers("of rows", 2 * memory.row_slots)
      .barriers("of ring", 2 * stages);
}

}  // namespace heddle
