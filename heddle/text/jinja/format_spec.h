// Python's format(): a value written as a specification such as ">8.2f" says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "heddle/text/jinja/value.h"

namespace heddle::jinja {

std::string format_value(Budget& budget, const Value& value, std::string_view spec);

// The digits of a finite or special number without its sign, as C's printf writes them for the conversions
// e, f and g and their capitals. `alternate` keeps the point and the zeros at the end.
std::string float_digits(double number, char conversion, int64_t precision, bool alternate);

// Limits a width or precision that a template gives, and pays for it.
int64_t checked_width(Budget& budget, int64_t width);

// `text` in a field of `width` characters.
struct Field {
  std::string fill = " ";
  char align = '<';  // < > ^
  int64_t width = 0;
};
std::string pad(std::string_view text, const Field& field);

// ASCII in the manner of Python's ascii().
std::string to_ascii(std::string_view text);

}  // namespace heddle::jinja
