// Matrices of plain elements as operands: of products of batches, and scales. Host and device include it: no standard headers.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

// A matrix of plain elements whose rows or columns are contiguous, or several of them.
struct Matrices {
  Tensor data;  // [..., rows, cols]; transposed: [..., cols, rows]
  bool transposed = false;

  // These take data with two or three dimensions.
  i32 rows() const { return transposed ? inner() : outer(); }
  i32 cols() const { return transposed ? outer() : inner(); }
  Matrix matrix() const { return {.data = data, .transposed = transposed}; }
  // Number i of those that data with three dimensions has.
  Matrix at(i32 i) const {
    Matrix one{.data = data, .transposed = transposed};
    one.data.data += i * data.stride[0] * size_of(data.dtype);
    one.data.offset += i * data.stride[0] * size_of(data.dtype);
    one.data.rank = 2;
    one.data.size[0] = data.size[1], one.data.size[1] = data.size[2], one.data.size[2] = 0;
    one.data.stride[0] = data.stride[1], one.data.stride[1] = data.stride[2], one.data.stride[2] = 0;
    return one;
  }
  // The matrix's rows, or columns, from `begin` to `end`.
  Matrix slice(bool of_rows, i32 begin, i32 end) const {
    Matrix part = matrix();
    const bool outer = of_rows != transposed;
    const i64 skipped = begin * (outer ? data.stride[0] : data.stride[1]) * size_of(data.dtype);
    part.data.data += skipped, part.data.offset += skipped;
    i32& size = outer ? part.data.size[0] : part.data.size[1];
    size = end - begin;
    return part;
  }

 private:
  // A constant index for each size: a kernel's copy of arguments that are indexed by a condition stays in memory, and NVRTC 13.0
  // takes 15 s instead of 2.5 for a body of scaled_mm.
  i32 outer() const { return data.rank == 3 ? data.size[1] : data.size[0]; }
  i32 inner() const { return data.rank == 3 ? data.size[2] : data.size[1]; }
};

// Shows them to what `visit` is called with. An op's fields say that they are matrices after mark_matrices (ir/mark_matrices.h).
template <class V, class Made>
void visit_matrices(V&& v, const char* name, const char* transposed, Made& made, const char* dims,
                    const char* dtypes) {
  v.read(name, made.data, dims, dtypes);
  v.attribute(transposed, made.transposed);
}

}  // namespace heddle
