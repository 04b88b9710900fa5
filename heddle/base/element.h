// One element in memory as a number, whatever its type: for tables, comparisons and tests, not for kernels.
#pragma once

#include <cstddef>

#include "heddle/base/dtype.h"

namespace heddle {

// Exact, but for i64 beyond 2^53. Throws for i4, which has no address.
double load_number(DType type, const std::byte* at);

// Rounds a float to nearest even; of an integer type `value` must be a number of its range, which is rounded to a whole one.
void store_number(DType type, std::byte* at, double value);

// What storing `value` as the float type `type` leaves of it.
float round_to(DType type, float value);

}  // namespace heddle
