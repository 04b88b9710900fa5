// Reads and writes one element of any type as a number, for tables, comparisons and tests. It is too slow for
// kernels.
#pragma once

#include <cstddef>

#include "heddle/base/dtype.h"

namespace heddle {

// Exact, except for i64 beyond 2^53. Throws for i4, which has no address.
double load_number(DType type, const std::byte* at);

// Rounds to the nearest float, ties to even. For an integer type `value` must be in its range; it is rounded
// to a whole number.
void store_number(DType type, std::byte* at, double value);

// Element `index` from an address on. The even element of an i4 pair is in the low four bits of its byte.
double load_number(DType type, const std::byte* from, long long index);
void store_number(DType type, std::byte* to, long long index, double value);

// Returns `value` after it was stored as the float type `type`.
float round_to(DType type, float value);

}  // namespace heddle
