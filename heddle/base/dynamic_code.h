// The dynamic code of 8-bit optimizer states (Dettmers et al., 2022), as bitsandbytes and torchao define it: the values of a block,
// divided by the largest magnitude in it, become the nearest of 256 numbers of [-1, 1], or [0, 1] without a sign. These are 0, 1,
// and in each of seven decades the middles of equal parts of [0.1, 1] * 10^e, twice as many in each larger decade.
#pragma once

#include <array>
#include <cstdint>

namespace heddle {

inline constexpr int kDynamicBlock = 256;  // elements that share a scale

struct DynamicCode {
  std::array<float, 256> values;   // ascending
  std::array<float, 256> middles;  // between a value and the next one; infinity after the last
  // The code of the least number with these upper 16 bits. A number's code is this one or the next.
  // After the last there is room for reads of four bytes.
  std::array<uint8_t, 65536 + 3> first;

  explicit DynamicCode(bool is_signed);
  static const DynamicCode& of(bool is_signed);

  // The code of the nearest value, the lower one of two that are as near. NaN takes the last.
  uint8_t code_of(float x) const;
};

}  // namespace heddle
