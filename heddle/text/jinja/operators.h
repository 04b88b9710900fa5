// Arithmetic of templates. A whole number beyond 128 bits is an Error.
#pragma once

#include <string_view>

#include "heddle/text/jinja/value.h"

namespace heddle::jinja {

// + - * / // % **
Value apply_binary(Budget& budget, std::string_view operation, const Value& a, const Value& b);
Value negated(const Value& value);  // takes a whole number
// + and -
Value apply_sign(std::string_view sign, const Value& value);

}  // namespace heddle::jinja
