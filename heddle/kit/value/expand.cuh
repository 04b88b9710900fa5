// Numbers of codes, and values of codes with a scale, in registers. Codes come in pieces, eight of one row (ir/code_panel.h). A value is
// code * scale in f32, rounded to bf16: exactly the value that an expansion in memory has.
#pragma once

#include "heddle/base/code.h"
#include "heddle/kit/arch/numbers.cuh"

namespace heddle::device {

// Two FP8 codes with one scale, those of the low half of `bits` or of the high one.
template <bool kHigh = false>
inline u32 expand_two_e4m3(u32 bits, float scale) {
  float first, second;
  arch::from_e4m3<kHigh>(bits, first, second);
  return arch::pack_bf16(first * scale, second * scale);
}
inline uint4 expand_e4m3(u32 first, u32 later, float scale) {
  return {expand_two_e4m3(first, scale), expand_two_e4m3<true>(first, scale), expand_two_e4m3(later, scale),
          expand_two_e4m3<true>(later, scale)};
}

// Two codes of int4, in bits 0 to 3 of either half of `bits`. The bits of n + 8 in a bf16 of 128 make n + 136. kNarrow: the scale is
// a bf16, and one rounding of the product of two bf16 is that of the product in f32.
template <bool kNarrow>
inline u32 expand_two_i4(u32 bits, float scale) {
  constexpr u32 kOnes = 0x3f803f80, kLess136 = 0xc308c308, kMinusZeros = 0x80008000;
  const u32 numbers = arch::multiply_add_bf16((bits & 0x000f000f) ^ 0x43084308, kOnes, kLess136);
  if constexpr (kNarrow) {
    const u32 high = __float_as_uint(scale) & 0xffff0000u;
    return arch::multiply_add_bf16(numbers, high | high >> 16, kMinusZeros);
  }
  return arch::pack_bf16(__uint_as_float(numbers << 16) * scale,
                         __uint_as_float(numbers & 0xffff0000u) * scale);
}
template <bool kNarrow>
inline uint4 expand_i4(u32 codes, float scale) {
  return {expand_two_i4<kNarrow>(codes, scale), expand_two_i4<kNarrow>(codes >> 4, scale),
          expand_two_i4<kNarrow>(codes >> 8, scale), expand_two_i4<kNarrow>(codes >> 12, scale)};
}

// Eight FP8 codes as f16.
inline uint4 numbers_of_e4m3(u32 first, u32 later) {
  return {arch::from_e4m3_to_f16(first), arch::from_e4m3_to_f16<true>(first), arch::from_e4m3_to_f16(later),
          arch::from_e4m3_to_f16<true>(later)};
}
// Eight codes of int4 as f16. The bits of n + 8 in an f16 of 1024 make 1024 + n + 8, or 1024 + 16 (n + 8).
inline uint4 numbers_of_i4(u32 codes) {
  constexpr u32 kOnes = 0x3c003c00, kSixteenths = 0x2c002c00, kLess1032 = 0xe408e408, kLess72 = 0xd480d480;
  const auto low = [](u32 bits) {
    return arch::multiply_add_f16((bits & 0x000f000f) ^ 0x64086408, kOnes, kLess1032);
  };
  const auto high = [](u32 bits) {
    return arch::multiply_add_f16((bits & 0x00f000f0) ^ 0x64806480, kSixteenths, kLess72);
  };
  return {low(codes), high(codes), low(codes >> 8), high(codes >> 8)};
}

// True if a bf16 holds the scale.
inline bool is_narrow(float scale) {
  return (__float_as_uint(scale) & 0xffffu) == 0;
}

}  // namespace heddle::device
