// Quotients of integers. Read by host and device: no standard headers.
#pragma once

#include "heddle/base/types.h"

namespace heddle {

// a / b of numbers that are not negative, by 32 bits where these do: a GPU divides no others quickly.
constexpr i64 floor_div(i64 a, i64 b) {
  return ((a | b) >> 32) == 0 ? i64(u32(a) / u32(b)) : a / b;
}

// The number of parts of b that make at least a.
constexpr i64 ceil_div(i64 a, i64 b) {
  return floor_div(a + b - 1, b);
}

}  // namespace heddle
