// Automata of the values of JSON that have no others inside.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/text/grammar/byte_dfa.h"

namespace heddle {

class Json;

// Any string of JSON, in UTF-8 and in any spelling, escapes of surrogates in pairs.
const ByteDfa& any_string();
// The state of any_string() that each of its characters leads to.
constexpr u32 kStringCharacter = 2;

// A bound of numbers; `open`: it is none of them.
struct NumberBound {
  std::string digits;  // decimal, without an exponent: "-12.5"
  bool open = false;
};
// The digits of a number of JSON. Throws Error where they are more than 15 (19 of an integer).
std::string decimal_digits(const Json& value);

// Numbers, or integers (without point and exponent), within bounds. Bounded numbers have no exponent, and at most 15 digits (integers
// 19), which floats tell apart; others at most 30 before and after the point, and an exponent of two digits.
ByteDfa numbers(bool integer, const std::optional<NumberBound>& least,
                const std::optional<NumberBound>& most);

// A value in the one spelling that enum and const have: without spaces, and with escapes only where they must be.
std::string json_text(const Json& value);
// A string of that spelling that is none of `names`: other keys of an object.
ByteDfa key_but(const std::vector<std::string>& names);

}  // namespace heddle
