// Helpers for shape rules and costs of ops: checks whose messages name the op, the argument and the values.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "heddle/base/element.h"
#include "heddle/base/error.h"
#include "heddle/ir/op.h"
#include "heddle/ir/shape_text.h"

namespace heddle {

void require_rank(const char* op, const char* argument, const Tensor& tensor, int rank);
void require_shape(const char* op, const char* argument, const Tensor& tensor, std::vector<i32> shape);
void require_dtype(const char* op, const char* argument, const Tensor& tensor, DType dtype);
void require_float(const char* op, const char* argument, const Tensor& tensor);

// Gives an output its sizes and, where it is not placed yet, dtype and dense strides. An output that exists
// must have that shape already.
void set_output(const char* op, const char* argument, Tensor& output, DType dtype, std::vector<i32> shape);
Tensor dense(DType dtype, std::vector<i32> shape);
// Columns [begin, begin + count) of a matrix, where they lie.
Tensor columns_of(Tensor matrix, i32 begin, i32 count);

// Packed matrices of floats.
void require_weight(const char* op, const char* argument, const Weight& weight, i32 matrices = 1);
// The panels that hold rows [first, last) of each matrix.
Region rows_of_panels(const Weight& weight, i32 first, i32 last);
// A part of the step record: u8 [bytes].
void require_record(const char* op, const char* argument, const Tensor& tensor);

// The bytes of tensor[box], box = {begin, end} for each dimension.
inline Region part_of(const Tensor& tensor, Access access, std::initializer_list<std::array<i32, 2>> box) {
  return region_of(tensor, access, {box.begin(), box.size()});
}

// Axes of a matrix [rows, cols] that is cut in rows only, or in both; columns at multiples of `unit`.
std::vector<TileAxis> row_axes(i32 rows, i32 preferred = 16);
// Of one whose rows are read whole: on a GPU in about as many tiles as there are multiprocessors, of four rows at least.
std::vector<TileAxis> norm_axes(i32 rows, const TilingTarget& target);
std::vector<TileAxis> matrix_axes(i32 rows, i32 cols, i32 unit = 1);

// Sums over the rows of a matrix [rows, cols] in parts of `part_rows` rows each, so that no sum depends on the tiling: an
// output f32 [parts, cols], the axis that cuts rows at borders of parts, and the parts of a tile.
void set_parts(const char* op, const char* argument, Tensor& parts, const Tensor& matrix, i32 part_rows);
std::vector<TileAxis> part_axes(i32 rows, i32 part_rows);
Region parts_of(const Tensor& parts, const TileCoord& tile, i32 part_rows);

// flops of an element-wise op with the axes M and N: `kFlops` for each element of the tile.
template <int kFlops>
double elementwise_flops(const std::byte*, const TileCoord& tile) {
  return double(kFlops) * (tile[1] - tile[0]) * (tile[3] - tile[2]);
}

// flops of a row-wise op whose first argument is a matrix: `kFlops` for each element of the tile's rows.
template <class Args, int kFlops>
double rowwise_flops(const std::byte* args, const TileCoord& tile) {
  return double(kFlops) * (tile[1] - tile[0]) * as<Args>(args).x.last();
}

}  // namespace heddle
