#include "heddle/base/base64.h"

#include <algorithm>
#include <cstdint>

namespace heddle {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text;
  for (; !bytes.empty(); bytes.remove_prefix(std::min<size_t>(3, bytes.size()))) {
    const size_t count = std::min<size_t>(3, bytes.size());
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i) bits = bits << 8 | (i < count ? uint8_t(bytes[i]) : 0u);
    for (size_t i = 0; i < 4; ++i) text += i <= count ? kAlphabet[bits >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes;
  for (; !text.empty(); text.remove_prefix(4)) {
    const bool last = text.size() == 4;
    const size_t digits = last && text[3] == '=' ? (text[2] == '=' ? 2 : 3) : 4;
    uint32_t bits = 0;
    for (size_t i = 0; i < 4; ++i) {
      const size_t digit = i < digits ? kAlphabet.find(text[i]) : 0;
      if (digit == std::string_view::npos) return std::nullopt;
      bits = bits << 6 | uint32_t(digit);
    }
    for (size_t i = 0; i + 1 < digits; ++i) bytes += char(bits >> (16 - 8 * i));
    // bits after the last byte are zero
    if ((bits & ((1u << (8 * (4 - digits))) - 1)) != 0) return std::nullopt;
  }
  return bytes;
}

}  // namespace heddle
