#include "heddle/base/crc32.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace heddle {
namespace {

uint32_t sum_of(std::string_view text) {
  return crc32_of(std::as_bytes(std::span(text)));
}

// The values of Python's zlib.crc32.
TEST(Crc32, IsThatOfZip) {
  EXPECT_EQ(sum_of(""), 0u);
  EXPECT_EQ(sum_of("123456789"), 0xcbf43926u);
  EXPECT_EQ(sum_of("The quick brown fox jumps over the lazy dog"), 0x414fa339u);
  EXPECT_EQ(sum_of(std::string(1000, '\0')), 0x060b1780u);
}

// Bit by bit, as RFC 1952 defines it.
TEST(Crc32, IsTheSameForAnyLengthAndPlace) {
  std::string text;
  for (int i = 0; i < 70; ++i) text += char(i * 37 + 11);
  for (size_t begin = 0; begin < 5; ++begin)
    for (size_t size = 0; size <= text.size() - begin; ++size) {
      uint32_t sum = ~uint32_t{0};
      for (const char byte : text.substr(begin, size))
        for (int bit = 0; bit < 8; ++bit) {
          const uint32_t low = (sum ^ (uint32_t(uint8_t(byte)) >> bit)) & 1;
          sum = (sum >> 1) ^ (low != 0 ? 0xedb88320u : 0);
        }
      EXPECT_EQ(sum_of(std::string_view(text).substr(begin, size)), ~sum) << begin << ", " << size;
    }
}

}  // namespace
}  // namespace heddle
