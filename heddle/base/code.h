// Codes of weights, in one table: how elements are stored that have fewer bits than their values, and share scales.
//   value = code * scale, in f32, rounded to the weight's dtype
// Host and device include it: no standard headers.
#pragma once

#include "heddle/base/dtype.h"

namespace heddle {

// Stored programs contain these numbers.
enum class Code : unsigned char { kNone, kF8E4M3, kI4 };

struct CodeInfo {
  Code code;
  const char* name;
  DType element;  // the type of a code; that of kNone is the weight's
  DType scale;    // the type of scales in memory, which holds those of every checkpoint exactly
};

constexpr CodeInfo kCodes[] = {
    {Code::kNone, "none", DType::kF32, DType::kF32},
    {Code::kF8E4M3, "f8e4m3", DType::kF8E4M3, DType::kF32},
    {Code::kI4, "i4", DType::kI4, DType::kF32},
};

constexpr int kNumCodes = sizeof(kCodes) / sizeof(kCodes[0]);

namespace code_detail {

constexpr bool in_order() {
  for (int i = 0; i < kNumCodes; ++i)
    if (int(kCodes[i].code) != i) return false;
  return true;
}
static_assert(in_order() && kNumCodes <= 8);

// The bits of every code, four bits of a word for each: device code reads no table from memory.
constexpr unsigned int packed_bits() {
  unsigned int word = 0;
  for (int i = 1; i < kNumCodes; ++i) word += unsigned(bits_of(kCodes[i].element)) << (4 * i);
  return word;
}
constexpr unsigned int kBits = packed_bits();

}  // namespace code_detail

constexpr const CodeInfo& info_of(Code code) {
  return kCodes[int(code)];
}
constexpr const char* name(Code code) {
  return int(code) < kNumCodes ? info_of(code).name : "?";
}
// Bits of one code; 0 for kNone.
constexpr int bits_of(Code code) {
  return int(code_detail::kBits >> (4 * int(code)) & 15);
}

// The storage of a matrix: a code, and how many adjacent columns of a row share a scale (0: all of them).
struct Coding {
  Code code = Code::kNone;
  unsigned short group = 0;

  bool operator==(const Coding&) const = default;
};

}  // namespace heddle
