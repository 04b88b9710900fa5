// Helpers for shape rules and costs of ops. Their messages name the op, the argument and the values.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "heddle/base/element.h"
#include "heddle/base/error.h"
#include "heddle/ir/op.h"
#include "heddle/ir/shape.h"

namespace heddle {

void require_rank(const char* op, const char* argument, const Tensor& tensor, int rank);
void require_shape(const char* op, const char* argument, const Tensor& tensor, Sizes shape);
void require_dtype(const char* op, const char* argument, const Tensor& tensor, DType dtype);
void require_float(const char* op, const char* argument, const Tensor& tensor);

// Gives an output its sizes and, if it is not placed yet, its dtype and dense strides. An output that exists
// must already have that shape.
void set_output(const char* op, const char* argument, Tensor& output, DType dtype, Sizes shape);
Tensor dense(DType dtype, Sizes shape);
// A view of columns [begin, begin + count) of a matrix.
Tensor columns_of(Tensor matrix, i32 begin, i32 count);

// Requires packed matrices of floats.
void require_weight(const char* op, const char* argument, const Weight& weight, i32 matrices = 1);
// Requires a matrix [rows, cols] as ir/tensor.h describes it; rows of i4 begin at whole bytes.
void require_matrix(const char* op, const char* argument, const Matrix& matrix);
// The values of a matrix, row-major, with scales.
std::vector<double> read_matrix(const Values& values, const Matrix& matrix);
// The panels that hold rows [first, last) of each matrix.
Region rows_of_panels(const Weight& weight, i32 first, i32 last);
// Requires a part of the step record: u8 [bytes].
void require_record(const char* op, const char* argument, const Tensor& tensor);

// The bytes of tensor[box], box = {begin, end} for each dimension.
inline Region part_of(const Tensor& tensor, Access access, std::initializer_list<std::array<i32, 2>> box) {
  return region_of(tensor, access, {box.begin(), box.size()});
}

// Axes of a matrix [rows, cols]: cut in rows only, or in both dimensions with columns at multiples of `unit`.
std::vector<TileAxis> row_axes(i32 rows, i32 preferred = 16);
// Axes of a matrix whose rows are read whole. On a GPU there are about as many tiles as multiprocessors, with
// at least four rows each.
std::vector<TileAxis> norm_axes(i32 rows, const TilingTarget& target);
std::vector<TileAxis> matrix_axes(i32 rows, i32 cols, i32 unit = 1);

// The reason why bulk copies cannot bring rows of a matrix: they begin at multiples of 16 bytes. Empty: they can.
std::string why_no_row_copies(const char* name, const Tensor& rows);

// Counts flops of an element-wise op with the axes M and N: `kFlops` for each element of the tile.
template <int kFlops>
double elementwise_flops(const std::byte*, const TileCoord& tile) {
  return double(kFlops) * (tile[1] - tile[0]) * (tile[3] - tile[2]);
}

// Counts flops of a row-wise op whose first argument is a matrix: `kFlops` for each element of the tile's
// rows.
template <class Args, int kFlops>
double rowwise_flops(const std::byte* args, const TileCoord& tile) {
  return double(kFlops) * (tile[1] - tile[0]) * as<Args>(args).x.last();
}

}  // namespace heddle
