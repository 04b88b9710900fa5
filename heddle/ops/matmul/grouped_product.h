// Rules that grouped_matmul and grouped_terms share.
#pragma once

#include <string>
#include <vector>

#include "heddle/ir/op.h"
#include "heddle/ops/matmul/product_kernel.h"

namespace heddle {

inline void require_unit(const char* op, i32 unit) {
  require(unit >= 1, "[{}] unit = {}; must be at least 1", op, unit);
}

inline std::string why_not_grouped(i32 unit) {
  if (unit % kGroupUnit == 0) return {};
  return fmt::format("groups end at multiples of {}; the kernel needs multiples of {}", unit, kGroupUnit);
}

inline i32 grouped_columns(const TilingTarget& target) {
  return target.gpu ? 64 : 128;
}

// The kernel has these; the tile body has none.
inline std::vector<OpConfig> grouped_configs(const ProductCall& call, const TilingTarget& target) {
  return target.kernels ? product_kernel_configs(call, *target.kernels) : std::vector<OpConfig>();
}

}  // namespace heddle
