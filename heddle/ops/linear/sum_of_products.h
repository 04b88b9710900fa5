// Says what sum_of_products.cuh takes on chip.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

// Bytes, of a tile {rows, columns}: the sum, and of both kinds of chunks a product's matrices and what it makes.
inline i64 sum_of_products_scratch(const TileCoord& t) {
  constexpr i64 kChunk = 64, kPadding = 36;
  const i64 rows = t[1] - t[0], cols = t[3] - t[2], fragment = rows * (cols * 4 + kPadding);
  const i64 product = rows * kChunk * 4 + cols * (kChunk * 4 + 4);
  return fragment + 2 * (product + fragment);
}

}  // namespace heddle
