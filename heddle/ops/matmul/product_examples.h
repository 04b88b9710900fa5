// Bounds of the cases of products.
#pragma once

#include <algorithm>
#include <cmath>

#include "heddle/ir/cases.h"

namespace heddle {

// Sums of products of values in [-1, 1]; narrow ones are rounded to bf16.
inline double product_bound(DType type, i32 k) {
  if (type == DType::kF32) return rounding_bound(type, 8) * std::max(1, k / 8);
  return rounding_bound(DType::kBf16, 8) * std::max(1.0, std::sqrt(k) / 2);
}

}  // namespace heddle
