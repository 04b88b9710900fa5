// Operands that bulk copies cannot bring as they lie are copied to the workspace first, in lines that begin at multiples of 128 bytes.
// Read by the plan and by the kernel: no standard headers.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

constexpr i32 kCopiesA = 1, kCopiesB = 2;  // KernelConfig::kCopies

// The copy of a matrix, or of a batch of them one after the other.
struct OperandCopy {
  i64 lines;
  i32 bytes;  // that a line has
  i64 pitch;  // bytes from line to line

  explicit constexpr OperandCopy(const Tensor& data)
      : lines(data.rank == 3 ? i64(data.size[0]) * data.size[1] : data.size[0]),
        bytes((data.rank == 3 ? data.size[2] : data.size[1]) * size_of(data.dtype)),
        pitch((i64(bytes) + 127) / 128 * 128) {}
  constexpr i64 all() const { return lines * pitch; }
};

}  // namespace heddle
