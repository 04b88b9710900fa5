#include "heddle/text/unicode/byte_level.h"

#include <array>

#include "heddle/text/unicode/utf8.h"

namespace heddle {
namespace {

constexpr uint32_t kAlphabetEnd = 0x100 + 68;

constexpr bool stands_for_itself(uint32_t byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD);
}

constexpr std::array<uint16_t, 256> make_char_of_byte() {
  std::array<uint16_t, 256> chars{};
  uint16_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) chars[byte] = stands_for_itself(byte) ? uint16_t(byte) : next++;
  return chars;
}
constexpr auto kCharOfByte = make_char_of_byte();

constexpr std::array<int16_t, kAlphabetEnd> make_byte_of_char() {
  std::array<int16_t, kAlphabetEnd> bytes{};
  for (auto& byte : bytes) byte = -1;
  for (uint32_t byte = 0; byte < 256; ++byte) bytes[kCharOfByte[byte]] = int16_t(byte);
  return bytes;
}
constexpr auto kByteOfChar = make_byte_of_char();

}  // namespace

std::optional<std::string> byte_level_decode(std::string_view token) {
  std::string bytes;
  while (!token.empty()) {
    const Utf8Char c = first_char(token);
    const bool known = c.state == Utf8Char::kValid && c.code_point < kAlphabetEnd;
    const int byte = known ? kByteOfChar[c.code_point] : -1;
    if (byte < 0) return std::nullopt;
    bytes += char(byte);
    token.remove_prefix(c.size);
  }
  return bytes;
}

std::string byte_level_encode(std::string_view bytes) {
  std::string token;
  for (char byte : bytes) append_utf8(kCharOfByte[uint8_t(byte)], token);
  return token;
}

}  // namespace heddle
