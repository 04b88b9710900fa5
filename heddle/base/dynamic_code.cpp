#include "heddle/base/dynamic_code.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace heddle {

DynamicCode::DynamicCode(bool is_signed) {
  constexpr int kDecades = 7;
  size_t count = 0;
  values[count++] = 0, values[count++] = 1;
  for (int decade = 0; decade < kDecades; ++decade) {
    const int parts = (is_signed ? 1 : 2) << decade;
    for (int part = 0; part < parts; ++part) {
      const double middle = (0.1 + 0.9 * (part + 0.5) / parts) * std::pow(10.0, decade - kDecades + 1);
      values[count++] = float(middle);
      if (is_signed) values[count++] = float(-middle);
    }
  }
  std::ranges::sort(values);
  for (size_t i = 0; i + 1 < values.size(); ++i) middles[i] = (values[i] + values[i + 1]) / 2;
  middles.back() = std::numeric_limits<float>::infinity();
  first = {};
  for (uint32_t upper = 0; upper < 65536; ++upper) {
    const bool is_negative = upper >= 0x8000;
    const float least = std::bit_cast<float>(upper << 16 | (is_negative ? 0xffffu : 0u));
    const auto at = std::ranges::lower_bound(middles, least);
    first[upper] = uint8_t(std::isnan(least) ? 255 : at - middles.begin());
  }
}

const DynamicCode& DynamicCode::of(bool is_signed) {
  static const DynamicCode with_sign(true), without(false);
  return is_signed ? with_sign : without;
}

uint8_t DynamicCode::code_of(float x) const {
  const uint8_t code = first[std::bit_cast<uint32_t>(x) >> 16];
  return uint8_t(code + (x > middles[code]));
}

}  // namespace heddle
