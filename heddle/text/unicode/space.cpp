#include "heddle/text/unicode/space.h"

#include "heddle/text/unicode/utf8.h"

namespace heddle {

bool is_white_space(uint32_t c) {
  return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

std::string_view last_char(std::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && (uint8_t(text[begin]) & 0xC0) == 0x80) --begin;
  return text.substr(begin);
}

size_t leading_space(std::string_view text) {
  size_t end = 0;
  while (end < text.size()) {
    const Utf8Char c = first_char(text.substr(end));
    if (!is_white_space(c.code_point)) break;
    end += c.size;
  }
  return end;
}

size_t trailing_space(std::string_view text) {
  while (!text.empty()) {
    const std::string_view last = last_char(text);
    if (!is_white_space(first_char(last).code_point)) break;
    text.remove_suffix(last.size());
  }
  return text.size();
}

}  // namespace heddle
