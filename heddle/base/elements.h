// Reads and writes many elements of any type as numbers, which takes less time than one by one (element.h).
#pragma once

#include <cstddef>
#include <span>

#include "heddle/base/dtype.h"

namespace heddle {

// Elements `first`, `first + step` and so on from an address on, one for each of `values`.
void load_numbers(DType type, const std::byte* from, long long first, long long step,
                  std::span<double> values);
void store_numbers(DType type, std::byte* to, long long first, long long step,
                   std::span<const double> values);

}  // namespace heddle
