#include "heddle/text/unicode/utf8.h"

#include <algorithm>

namespace heddle {
namespace {

struct Lead {
  uint8_t size;                     // size of the whole character; 0 if no character begins with this byte
  uint8_t second_low, second_high;  // range of the second byte
};

// Table 3-7 of the Unicode standard.
Lead lead_of(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

Utf8Char first_char(std::string_view text) {
  auto byte = [&](size_t i) { return uint8_t(text[i]); };
  const Lead lead = lead_of(byte(0));
  if (lead.size <= 1) return {byte(0), 1, lead.size == 1 ? Utf8Char::kValid : Utf8Char::kInvalid};
  uint32_t code_point = byte(0) & (0x7Fu >> lead.size);
  for (uint8_t i = 1; i < lead.size; ++i) {
    if (i == text.size()) return {0, i, Utf8Char::kIncomplete};
    const uint8_t low = i == 1 ? lead.second_low : 0x80, high = i == 1 ? lead.second_high : 0xBF;
    if (byte(i) < low || byte(i) > high) return {0, i, Utf8Char::kInvalid};
    code_point = code_point << 6 | (byte(i) & 0x3Fu);
  }
  return {code_point, lead.size, Utf8Char::kValid};
}

size_t count_characters(std::string_view text) {
  return size_t(std::ranges::count_if(text, [](char c) { return (uint8_t(c) & 0xC0) != 0x80; }));
}

void append_utf8(uint32_t code_point, std::string& out) {
  auto tail = [&](int shift) { return char(0x80 | (code_point >> shift & 0x3F)); };
  if (code_point < 0x80) {
    out += char(code_point);
  } else if (code_point < 0x800) {
    out += {char(0xC0 | code_point >> 6), tail(0)};
  } else if (code_point < 0x10000) {
    out += {char(0xE0 | code_point >> 12), tail(6), tail(0)};
  } else {
    out += {char(0xF0 | code_point >> 18), tail(12), tail(6), tail(0)};
  }
}

bool is_valid_utf8(std::string_view text) {
  return find_invalid_utf8(text) == std::string_view::npos;
}

size_t find_invalid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = first_char(text.substr(at));
    if (c.state != Utf8Char::kValid) return at;
    at += c.size;
  }
  return std::string_view::npos;
}

std::string to_valid_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const Utf8Char c = first_char(text);
    valid += c.state == Utf8Char::kValid ? text.substr(0, c.size) : kReplacement;
    text.remove_prefix(c.size);
  }
  return valid;
}

}  // namespace heddle
