// Packs rows of a matrix into the panels that tile bodies read, at the speed of memory, and checks that all
// values are finite. WeightStore decides which rows, and where they come from.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "heddle/ir/executor/panel_packer.h"
#include "heddle/ir/weight.h"

namespace heddle {

struct PackRow {
  const std::byte* data;          // its first column
  i64 step = 1;                   // elements from one column to the next
  const float* scales = nullptr;  // a coded weight has one for each group
};

struct PackPlace {
  i32 row, col;  // in the rows given
};

// Writes the panel of `rows`: as many rows as a panel has, or fewer at the end of a matrix. Slice s begins
// `table[s]` bytes after `base`. Elements have 2 or 4 bytes, or are codes of rows whose columns are adjacent. Returns the place of a value that is not finite;
// what comes after it is not packed then.
std::optional<PackPlace> pack_panel(const Weight& weight, std::span<const PackRow> rows, std::byte* base,
                                    const u64* table);

// Returns a row of a panel as it was before it was packed.
std::vector<std::byte> unpack_row(const Weight& weight, i32 row, const std::byte* base, const u64* table);

// Returns the place of the first of `count` adjacent elements that is not finite. Elements have 2 or 4 bytes.
std::optional<i64> find_not_finite(DType dtype, const std::byte* from, i64 count);

}  // namespace heddle
