// White space by the definition of Rust and Unicode's White_Space, in valid UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace heddle {

bool is_white_space(uint32_t code_point);
// The character that ends `text`, which is not empty.
std::string_view last_char(std::string_view text);
// The size of the white space that begins `text`.
size_t leading_space(std::string_view text);
// Where the white space that ends `text` begins.
size_t trailing_space(std::string_view text);

}  // namespace heddle
