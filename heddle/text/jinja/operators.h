// Arithmetic of templates. Whole numbers have 64 bits; a larger result is an Error.
#pragma once

#include <string_view>

#include "heddle/text/jinja/value.h"

namespace heddle::jinja {

// + - * / // % **
Value apply_binary(Budget& budget, std::string_view operation, const Value& a, const Value& b);
// + and -
Value apply_sign(std::string_view sign, const Value& value);

}  // namespace heddle::jinja
