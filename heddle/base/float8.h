// Conversions of fp8 on the host, on the bits, with rounding to nearest even, as in OCP's formats and
// PyTorch.
#pragma once

#include <bit>
#include <cstdint>

namespace heddle {
namespace float8_detail {

// Converts a finite magnitude to the code of an fp8 with `kMantissa` bits of mantissa and exponents from 2^(1
// - kBias) on. A magnitude that is too large gives a code past the format's last one.
template <int kMantissa, int kBias>
inline uint32_t round_magnitude(uint32_t magnitude) {
  constexpr uint32_t kDropped = 23 - kMantissa, kLeast = uint32_t(127 + 1 - kBias) << 23;
  if (magnitude < kLeast) {  // subnormal: let f32 addition round to the last place
    constexpr uint32_t kMagic = uint32_t(127 + 1 - kBias + int(kDropped)) << 23;
    const float rounded = std::bit_cast<float>(magnitude) + std::bit_cast<float>(kMagic);
    return std::bit_cast<uint32_t>(rounded) - kMagic;
  }
  const uint32_t rebiased = magnitude - (uint32_t(127 - kBias) << 23);
  return (rebiased + ((1u << (kDropped - 1)) - 1) + ((rebiased >> kDropped) & 1u)) >> kDropped;
}

template <int kMantissa, int kBias>
inline float finite_value(uint32_t code) {
  constexpr uint32_t kDropped = 23 - kMantissa;
  if (code >> kMantissa == 0)
    return float(code) * std::bit_cast<float>(uint32_t(127 + 1 - kBias - kMantissa) << 23);
  return std::bit_cast<float>((code << kDropped) + (uint32_t(127 - kBias) << 23));
}

}  // namespace float8_detail

// e4m3fn: no infinity, one NaN a sign, largest value 448.
inline float f8e4m3_to_float(uint8_t bits) {
  const uint32_t code = bits & 0x7fu, sign = uint32_t{bits & 0x80u} << 24;
  const float value =
      code == 0x7f ? std::bit_cast<float>(0x7fc00000u) : float8_detail::finite_value<3, 7>(code);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
}

// Saturates: everything beyond 448, including infinity, becomes 448 with its sign. NaN stays NaN.
inline uint8_t float_to_f8e4m3(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), sign = (bits >> 24) & 0x80u,
                 magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return uint8_t(sign | 0x7fu);
  if (magnitude >= 0x43e00000u) return uint8_t(sign | 0x7eu);  // 448 and more
  return uint8_t(sign | float8_detail::round_magnitude<3, 7>(magnitude));
}

// e5m2: infinities and NaNs as in IEEE, largest value 57344.
inline float f8e5m2_to_float(uint8_t bits) {
  const uint32_t code = bits & 0x7fu, sign = uint32_t{bits & 0x80u} << 24;
  const float value = code == 0x7c  ? std::bit_cast<float>(0x7f800000u)
                      : code > 0x7c ? std::bit_cast<float>(0x7fc00000u)
                                    : float8_detail::finite_value<2, 15>(code);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
}

inline uint8_t float_to_f8e5m2(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), sign = (bits >> 24) & 0x80u,
                 magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return uint8_t(sign | 0x7fu);
  if (magnitude >= 0x47700000u) return uint8_t(sign | 0x7cu);  // 61440 and more round to infinity
  return uint8_t(sign | float8_detail::round_magnitude<2, 15>(magnitude));
}

}  // namespace heddle
