// Whole numbers of any size: exact to 128 bits in arithmetic, and to their last digit when they are compared
// or written.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>

#include "heddle/text/jinja/value.h"

namespace heddle::jinja {

__extension__ using Wide = __int128;

// `text`: digits after an optional sign. Throws beyond the 4300 digits that Python reads.
Value integer_from_digits(std::string_view text);
Value integer_from(Wide number);
// The number without its fraction. Throws for an infinity or NaN.
Value integer_from(double number);

// Each works only for a whole number.
std::string digits_of(const Value& value);
std::optional<Wide> wide_of(const Value& value);
// Like wide_of, but throws beyond 128 bits with the name of the operation.
Wide require_wide(const Value& value, std::string_view operation);
bool is_negative(const Value& value);

std::partial_ordering compare_numbers(const Value& a, const Value& b);
std::string digits_of(Wide number, unsigned base = 10, bool upper = false);

}  // namespace heddle::jinja
