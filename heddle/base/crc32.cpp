#include "heddle/base/crc32.h"

#include <array>
#include <bit>
#include <cstring>

namespace heddle {
namespace {

constexpr uint32_t kPolynomial = 0xedb88320;  // IEEE 802.3, the lowest bit first
constexpr size_t kTables = 16;                // bytes at once
using Tables = std::array<std::array<uint32_t, 256>, kTables>;

// tables[n][b]: what byte b does to the sum when n bytes follow it (Kounavis and Berry, 2008).
constexpr Tables make_tables() {
  Tables tables = {};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t sum = byte;
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ ((sum & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = sum;
  }
  for (size_t n = 1; n < kTables; ++n)
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[n - 1][byte];
      tables[n][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  return tables;
}
constexpr Tables kTable = make_tables();

}  // namespace

uint32_t crc32_of(std::span<const std::byte> bytes) {
  static_assert(std::endian::native == std::endian::little);
  uint32_t sum = ~uint32_t{0};
  for (; bytes.size() >= kTables; bytes = bytes.subspan(kTables)) {
    std::array<uint32_t, kTables / 4> words;
    std::memcpy(words.data(), bytes.data(), kTables);
    words[0] ^= sum;
    sum = 0;
    for (size_t n = 0; n < kTables; ++n)
      sum ^= kTable[kTables - 1 - n][(words[n / 4] >> (8 * (n % 4))) & 0xff];
  }
  for (const std::byte byte : bytes) sum = (sum >> 8) ^ kTable[0][(sum ^ uint32_t(byte)) & 0xff];
  return ~sum;
}

}  // namespace heddle
