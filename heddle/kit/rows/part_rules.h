// Shape rules of ops that sum over the rows of a matrix in parts.
#pragma once

#include <array>
#include <vector>

#include "heddle/ir/op.h"

namespace heddle {

// Sums over the rows of a matrix [rows, cols] in parts of at most `part_rows` rows each (parts.h), so that no sum depends on
// the tiling: an output f32 [parts, cols], the axis of parts, a tile's rows of a matrix in `columns`, and how many they are.
// part_rows = 0 is what suits the matrix, and a CTA that needs elements of `at_work` rows at once.
void set_parts(const char* op, const char* argument, Tensor& parts, const Tensor& matrix, i32 part_rows,
               i32 at_work = 1);
std::vector<TileAxis> part_axes(const Tensor& parts);
void rows_of_parts(const Tensor& matrix, Access access, const TileCoord& tile, i32 parts,
                   std::array<i32, 2> columns, std::vector<Region>& out);
i64 count_rows_of_parts(const Tensor& matrix, const TileCoord& tile, i32 parts);

// Counts flops of the rows that a tile of parts has.
template <class Args, int kFlops>
double part_flops(const std::byte* args, const TileCoord& tile) {
  const auto& a = as<Args>(args);
  return double(kFlops) * double(count_rows_of_parts(a.x, tile, a.parts())) * a.x.last();
}

}  // namespace heddle
