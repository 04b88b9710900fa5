// Helpers for shape rules and costs of ops: checks whose messages name the op, the argument and the values.
#pragma once

#include <string>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/ir/op.h"

namespace heddle {

std::string shape_text(const Tensor& tensor);  // "f32 [5, 37]"

void require_rank(const char* op, const char* argument, const Tensor& tensor, int rank);
void require_shape(const char* op, const char* argument, const Tensor& tensor, std::vector<i32> shape);
void require_dtype(const char* op, const char* argument, const Tensor& tensor, DType dtype);
void require_float(const char* op, const char* argument, const Tensor& tensor);

// Gives an output its sizes and, where it is not placed yet, dtype and dense strides. An output that exists
// must have that shape already.
void set_output(Tensor& output, DType dtype, std::vector<i32> shape);
Tensor dense(DType dtype, std::vector<i32> shape);

// flops of a row-wise op whose first argument is a matrix: `kFlops` for each element of the tile's rows.
template <class Args, int kFlops>
double rowwise_flops(const std::byte* args, const TileCoord& tile) {
  return double(kFlops) * (tile[1] - tile[0]) * as<Args>(args).x.last();
}

}  // namespace heddle
