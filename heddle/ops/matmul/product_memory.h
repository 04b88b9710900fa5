// Shared memory and roles of the kernels of products (matmul_kernel.sm90.cuh, scaled_mm_kernel.sm80.cuh), for kernel and plan.
// Read by host and device: no standard headers.
#pragma once

#include "heddle/tile/budget.h"
#include "heddle/tile/mma_plan.h"

namespace heddle {

constexpr i32 kScaleSlabs = 8, kScaleStage = 128;  // slabs whose scales a warp has on chip, and bytes of each

// A CTA's tile of y; a slab has 128 bytes of k.
struct ProductTile {
  i32 rows, columns;
  i32 brought;  // columns of b that are brought, brought_columns()
  i32 slabs;    // a stage has
  i32 split;    // parts of k, each in a CTA of its own
  i32 scales;   // KernelConfig::kScales; 2: a warp has those of some slabs on chip

  // Groups of four warps, and blocks of 64 rows that each has.
  constexpr i32 groups() const { return rows == 64 ? 1 : 2; }
  constexpr i32 blocks() const { return rows / (64 * groups()); }
  // The columns that a CTA stores, and those that a group stores at once, as boxes.
  constexpr i32 own() const { return columns / split; }
  constexpr i32 part() const { return own() < 64 ? 0 : own() % 128 == 0 && split == 1 ? 128 : 64; }
};

// `lines` rows or columns of a slab.
constexpr tile::OperandTile product_operand(i32 lines, i32 element_bytes, tile::Major major) {
  return {lines, 128 / element_bytes, element_bytes, major};
}
// Sums that a group stores at once.
constexpr tile::OperandTile stored_tile(const ProductTile& tile, i32 element_bytes) {
  return {64, tile.part(), element_bytes};
}

// Columns that lie side by side are brought as boxes of 128 bytes.
constexpr i32 brought_columns(i32 columns, tile::Major major) {
  return major == tile::Major::kK ? columns : (columns + 63) / 64 * 64;
}

constexpr i32 product_slab_bytes(i32 rows, i32 columns) {
  return (rows + columns) * 128;
}

constexpr tile::Budget product_budget(const ProductTile& tile, i32 out_bytes, i32 stages) {
  const i32 groups = tile.groups(), slab = product_slab_bytes(tile.rows, tile.brought);
  const bool splits = tile.split > 1;
  return tile::Budget{}
      .role("bring", 4, groups == 2 ? 40 : 24)
      .role("multiply", 4 * groups, groups == 2 ? 232 : 240)
      .part("ring", stages * tile.slabs * slab, 1024)
      .part("stored", groups * stored_tile(tile, out_bytes).bytes(), 1024)
      .part("sums", splits ? groups * 128 * (tile.columns - tile.own()) / 2 * 4 : 0)  // from other CTAs
      .barriers("of ring", 2 * stages)
      .barriers("of sums", splits ? 2 * groups : 0)
      .part("scales", tile.scales == 2 ? groups * 4 * kScaleSlabs * kScaleStage : 0);
}

// The kernel of warps.
constexpr tile::Budget warp_product_budget(i32 rows, i32 columns, i32 stages) {
  return tile::Budget{}.part("slabs", stages * product_slab_bytes(rows, columns), 128);
}

}  // namespace heddle
