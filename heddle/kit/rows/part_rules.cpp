#include "heddle/kit/rows/part_rules.h"

#include <algorithm>

#include "heddle/base/error.h"
#include "heddle/ir/rules.h"
#include "heddle/kit/rows/parts.h"

namespace heddle {

void set_parts(const char* op, const char* argument, Tensor& parts, const Tensor& matrix, i32 part_rows,
               i32 at_work) {
  require(part_rows >= 0 && part_rows <= kMostPartRows,
          "[{}] part_rows = {}; must be 1 to {}, or 0 for what suits x", op, part_rows, kMostPartRows);
  const i32 rows = matrix.size[0];
  const i64 count =
      ceil_div(rows, rows_of_part(part_rows, rows, matrix.last(), size_of(matrix.dtype), 1, at_work));
  set_output(op, argument, parts, DType::kF32, {i32(count), matrix.last()});
}

std::vector<TileAxis> part_axes(const Tensor& parts) {
  return {{.dim = "P", .extent = parts.size[0], .preferred = 1}};
}

// All parts have the rows of whole rounds, and the first ones those of the round after.
void rows_of_parts(const Tensor& matrix, Access access, const TileCoord& tile, i32 parts,
                   std::array<i32, 2> columns, std::vector<Region>& out) {
  const i32 rounds = matrix.size[0] / parts, left = std::min(tile[1], matrix.size[0] % parts);
  Tensor cut = matrix;
  cut.rank = 3;
  cut.size[0] = rounds, cut.size[1] = parts, cut.size[2] = matrix.last();
  cut.stride[0] = parts * matrix.stride[0], cut.stride[1] = matrix.stride[0],
  cut.stride[2] = matrix.stride[1];
  if (rounds > 0) out.push_back(part_of(cut, access, {{0, rounds}, {tile[0], tile[1]}, columns}));
  if (tile[0] < left)
    out.push_back(part_of(matrix, access, {{rounds * parts + tile[0], rounds * parts + left}, columns}));
}

i64 count_rows_of_parts(const Tensor& matrix, const TileCoord& tile, i32 parts) {
  i64 rows = 0;
  for (i32 part = tile[0]; part < tile[1]; ++part) rows += rows_in_part(matrix.size[0], parts, part);
  return rows;
}

}  // namespace heddle
