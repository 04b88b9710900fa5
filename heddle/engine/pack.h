// Rows of a matrix into the panels that tile bodies read, at the speed of memory; sees that all values are finite.
// Where rows come from, and which, is for WeightStore to say.
#pragma once

#include <optional>
#include <span>

#include "heddle/ir/tensor.h"

namespace heddle {

struct PackRow {
  const std::byte* data;  // of its first column
  i64 step = 1;           // elements from a column to the next
};

struct PackPlace {
  i32 row, col;  // of the rows given
};

// Writes the panel of `rows`, as many as it has or fewer at the end of a matrix; slice s begins `table[s]` bytes behind
// `base`. Elements have 2 or 4 bytes. Returns where a value is not finite; what lies behind is not packed then.
std::optional<PackPlace> pack_panel(const Weight& weight, std::span<const PackRow> rows, std::byte* base,
                                    const u64* table);

}  // namespace heddle
