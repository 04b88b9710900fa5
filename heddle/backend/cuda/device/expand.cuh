// Expands pieces of codes, eight of one row (ir/code_panel.h), to bf16 in registers. A value is code * scale in f32, rounded to bf16:
// exactly the value that an expansion in memory has.
#pragma once

#include "heddle/base/code.h"
#include "heddle/kit/arch/numbers.cuh"

namespace heddle::device {

// Eight FP8 codes with one scale.
inline uint4 expand_e4m3(u32 first, u32 later, float scale) {
  float value[8];
  arch::from_e4m3(first, value[0], value[1]), arch::from_e4m3<true>(first, value[2], value[3]);
  arch::from_e4m3(later, value[4], value[5]), arch::from_e4m3<true>(later, value[6], value[7]);
  const auto pair = [&](i32 i) { return arch::pack_bf16(value[i] * scale, value[i + 1] * scale); };
  return {pair(0), pair(2), pair(4), pair(6)};
}

// Eight codes of int4. The bits of n + 8 in a bf16 of 128 make n + 136. kNarrow: the scale is a bf16, and one rounding of the product
// of two bf16 is that of the product in f32.
template <bool kNarrow>
inline uint4 expand_i4(u32 codes, float scale) {
  constexpr u32 kOnes = 0x3f803f80, kLess136 = 0xc308c308, kMinusZeros = 0x80008000;
  const u32 high = __float_as_uint(scale) & 0xffff0000u, scales = high | high >> 16;
  const auto pair = [&](u32 bits) {
    const u32 numbers = arch::multiply_add_bf16((bits & 0x000f000f) ^ 0x43084308, kOnes, kLess136);
    if constexpr (kNarrow) return arch::multiply_add_bf16(numbers, scales, kMinusZeros);
    return arch::pack_bf16(__uint_as_float(numbers << 16) * scale,
                           __uint_as_float(numbers & 0xffff0000u) * scale);
  };
  return {pair(codes), pair(codes >> 4), pair(codes >> 8), pair(codes >> 12)};
}

// True if a bf16 holds the scale.
inline bool is_narrow(float scale) {
  return (__float_as_uint(scale) & 0xffffu) == 0;
}

}  // namespace heddle::device
