// Instructions of one number: approximations, and conversions between f32 and narrower floats.
#pragma once

#include "heddle/base/types.h"

namespace heddle::device::arch {

// 1 / x, within an ulp.
inline float reciprocal(float x) {
  float value;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"(x));
  return value;
}
// 1 / sqrt(x), within 2 ulp.
inline float rsqrt(float x) {
  float value;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"(x));
  return value;
}
// 2^x, within 2 ulp.
inline float exp2(float x) {
  float value;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"(x));
  return value;
}
// The larger one and the smaller one, or NaN where either is NaN; as fast as those that lose it.
inline float max_or_nan(float a, float b) {
  float value;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(value) : "f"(a), "f"(b));
  return value;
}
inline float min_or_nan(float a, float b) {
  float value;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(value) : "f"(a), "f"(b));
  return value;
}
inline float from_f16(u16 bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
inline u16 to_bf16(float value) {
  u16 bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
inline u16 to_f16(float value) {
  u16 bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

// a b + c of two f16 each, rounded once.
inline u32 multiply_add_f16(u32 a, u32 b, u32 c) {
  u32 sums;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(sums) : "r"(a), "r"(b), "r"(c));
  return sums;
}

// Two f8e4m3 in the low half of `bits`, or in the high one, as two f16, which hold them exactly; the first one is lower.
template <bool kHigh = false>
inline u32 from_e4m3_to_f16(u32 bits) {
#if __CUDA_ARCH__ >= 890
  u32 halves;
  if constexpr (kHigh)
    asm("{.reg .b16 low, high; mov.b32 {low, high}, %1; cvt.rn.f16x2.e4m3x2 %0, high;}"
        : "=r"(halves)
        : "r"(bits));
  else
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(u16(bits)));
  return halves;
#else
  // The bits of two f16 that are 2^8 times less, and have no NaN.
  const u32 two = __byte_perm(bits, 0, kHigh ? 0x3424 : 0x1404);
  return multiply_add_f16((two & 0x80008000) | (two >> 1 & 0x3f803f80), 0x5c005c00, 0x80008000);
#endif
}

// Two f8e4m3, as from_e4m3_to_f16() takes them, as two f32.
template <bool kHigh = false>
inline void from_e4m3(u32 bits, float& first, float& second) {
#if __CUDA_ARCH__ >= 890
  const u32 halves = from_e4m3_to_f16<kHigh>(bits);
  first = from_f16(u16(halves)), second = from_f16(u16(halves >> 16));
#else
  // The bits of an f16 that is 2^8 times less, except for NaN.
  const auto convert = [](u32 byte) {
    const float value = from_f16(u16((byte & 0x80) << 8 | (byte & 0x7f) << 7)) * 256.0f;
    return (byte & 0x7f) == 0x7f ? __int_as_float(0x7fffffff) : value;
  };
  constexpr u32 kShift = kHigh ? 16 : 0;
  first = convert(bits >> kShift), second = convert(bits >> (kShift + 8));
#endif
}

// True where the hardware rounds to 8-bit floats: pack_e4m3 and pack_e5m2 give two of them in the low half of a word, the first one
// lower; larger numbers become the largest.
#if __CUDA_ARCH__ >= 890
constexpr bool kRoundsToCodes = true;
inline u32 pack_e4m3(float first, float second) {
  u16 codes;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(second), "f"(first));
  return codes;
}
inline u32 pack_e5m2(float first, float second) {
  u16 codes;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(second), "f"(first));
  return codes;
}
#else
constexpr bool kRoundsToCodes = false;
inline u32 pack_e4m3(float, float) {
  return 0;
}
inline u32 pack_e5m2(float, float) {
  return 0;
}
#endif

// a b + c of two bf16 each, rounded once.
inline u32 multiply_add_bf16(u32 a, u32 b, u32 c) {
  u32 sums;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(sums) : "r"(a), "r"(b), "r"(c));
  return sums;
}

// Packs two 16-bit floats in a word, the first in its low half.
inline u32 pack_bf16(float first, float second) {
  u32 bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(second), "f"(first));
  return bits;
}
inline u32 pack_f16(float first, float second) {
  u32 bits;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(second), "f"(first));
  return bits;
}

}  // namespace heddle::device::arch
