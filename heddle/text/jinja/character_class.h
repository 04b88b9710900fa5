// The classes of characters that Python's text methods ask for; Unicode 14 in both implementations.
#pragma once

#include <cstdint>

namespace heddle::jinja {

bool is_lowercase(uint32_t code_point);
bool is_uppercase(uint32_t code_point);
bool is_titlecase(uint32_t code_point);
bool is_cased(uint32_t code_point);
bool is_case_ignorable(uint32_t code_point);
// Characters that repr() does not escape.
bool is_printable(uint32_t code_point);

bool is_alphabetic(uint32_t code_point);
bool is_decimal(uint32_t code_point);
bool is_digit(uint32_t code_point);    // decimal, or one digit in another form
bool is_numeric(uint32_t code_point);  // also fractions and ideographs of numbers
bool is_alphanumeric(uint32_t code_point);

bool begins_identifier(uint32_t code_point);
bool continues_identifier(uint32_t code_point);

}  // namespace heddle::jinja
