// Packs weights that lie in an executor's memory to panels there, without the host.
#pragma once

#include <cstddef>
#include <span>

#include "heddle/ir/weight.h"

namespace heddle {

// Its calls return when the work has begun, and finish() waits for all of it. The tensors stay until then.
class PanelPacker {
 public:
  virtual ~PanelPacker() = default;  // waits

  // Packs the rows of all matrices of `weight`, one after the other, to `to`. `rows`: where the first column of each lies
  // in the space; null: the row stays as it is packed. `step`: bytes from one column to the next.
  virtual void pack(const Weight& weight, std::span<const std::byte* const> rows, i64 step,
                    std::byte* to) = 0;
  // Looks for numbers that are not finite among `count` adjacent ones of 2 or 4 bytes.
  virtual void look(DType dtype, const std::byte* from, i64 count) = 0;
  // Waits. True if all that was looked at since the last call is finite.
  virtual bool all_finite() = 0;
  virtual void finish() = 0;  // throws the first error
};

// The exponent bits that only infinity and NaN have.
constexpr u32 not_finite_exponent(DType dtype) {
  return dtype == DType::kF32 ? 0x7f800000u : dtype == DType::kBf16 ? 0x7f80u : 0x7c00u;
}

}  // namespace heddle
