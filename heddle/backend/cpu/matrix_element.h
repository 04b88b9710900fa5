// Elements of a matrix as it lies in memory: floats, or codes with scales (ir/tensor.h).
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

// The scaled element that lies at data[r, c].
float element_of(const Matrix& matrix, i32 r, i32 c);
// The scaled elements data[r, first] to data[r, first + count - 1].
void decode_row(const Matrix& matrix, i32 r, i32 first, i32 count, float* to);

}  // namespace heddle
