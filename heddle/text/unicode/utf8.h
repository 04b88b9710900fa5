// UTF-8 as Unicode's chapter 3 defines it, and the lossy conversion of ill-formed bytes: each maximal part
// that could have begun a character becomes one U+FFFD, as in Rust's from_utf8_lossy and the WHATWG decoder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace heddle {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

struct Utf8Char {
  enum State : uint8_t { kValid, kInvalid, kIncomplete };
  uint32_t code_point = 0;  // only if valid
  uint8_t size = 0;         // bytes of the character, or of the ill-formed part
  State state = kInvalid;   // incomplete: the text ends before the character does
};

// The character at the beginning of `text`, which is not empty.
Utf8Char first_char(std::string_view text);

size_t count_characters(std::string_view text);  // that is valid UTF-8

void append_utf8(uint32_t code_point, std::string& out);

bool is_valid_utf8(std::string_view text);
// Where the first ill-formed part begins; npos when there is none.
size_t find_invalid_utf8(std::string_view text);

// Replaces ill-formed parts of `text`, including an incomplete character at its end.
std::string to_valid_utf8(std::string_view text);

}  // namespace heddle
