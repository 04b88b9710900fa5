// Values of the device block: one float per thread. Has the primitives that tile/math.cuh wants, and loads and stores of elements.
#pragma once

#include "heddle/ir/step.h"
#include "heddle/ir/tensor.h"
#include "heddle/kit/arch/numbers.cuh"
#include "heddle/tile/block.h"

namespace heddle::device {

inline float fma(float a, float b, float c) {
  return __fmaf_rn(a, b, c);
}
inline float max(float a, float b) {
  return arch::max_or_nan(a, b);
}
inline float min(float a, float b) {
  return arch::min_or_nan(a, b);
}
inline i32 max(i32 a, i32 b) {
  return a > b ? a : b;
}
inline i32 min(i32 a, i32 b) {
  return a < b ? a : b;
}
inline float abs(float a) {
  return fabsf(a);
}
inline float round(float a) {
  return rintf(a);
}
inline float floor(float a) {
  return floorf(a);
}
inline float sqrt(float a) {
  return __fsqrt_rn(a);
}
inline float exp2i(float n) {
  return __int_as_float((i32(n) + 127) << 23);
}
inline float where_less(float a, float b, float x, float y) {
  return a < b ? x : y;
}

// e^x by the hardware's 2^x, corrected by the rounding error of x * log2 e; 2 ulp. Replaces the one of tile/math.cuh.
inline float exp(float x) {
  constexpr float kLog2E = 1.44269504088896341f, kRest = 1.92596299e-8f;
  // 2^x is 0 at the lower bound, and infinite at the upper one, where `lost` is positive: infinity stays.
  x = min(max(x, -104.0f), 89.0f);
  const float power = x * kLog2E, lost = __fmaf_rn(x, kLog2E, -power) + x * kRest;
  const float value = arch::exp2(power);
  return __fmaf_rn(value * lost, 0.693147181f, value);
}

// a / b without the branch of a division, for a normal or infinite b or 0. It is corrected by the remainder, which gives the nearest
// float except at the ends of the range. Replaces the one of tile/math.cuh.
inline float quotient(float a, float b) {
  const float near = arch::reciprocal(b), inverse = __fmaf_rn(__fmaf_rn(-b, near, 1.0f), near, near);
  const float q = a * inverse, better = __fmaf_rn(__fmaf_rn(-b, q, a), inverse, q);
  return better == better ? better : a * near;  // infinities have no remainder
}

// quotient(1, 1 + e^-x). Replaces the one of tile/math.cuh.
inline float sigmoid(float x) {
  const float b = 1.0f + exp(-x), near = arch::reciprocal(b),
              inverse = __fmaf_rn(__fmaf_rn(-b, near, 1.0f), near, near);
  const float better = __fmaf_rn(__fmaf_rn(-b, inverse, 1.0f), inverse, inverse);
  return better == better ? better : near;
}

// 1 / sqrt(x) without a branch, for a normal or infinite x: the hardware's value, corrected once. Replaces the one of tile/math.cuh.
inline float rsqrt(float x) {
  const float near = arch::rsqrt(x);
  const float better = __fmaf_rn(near * 0.5f, __fmaf_rn(-x * near, near, 1.0f), near);
  return better == better ? better : near;
}

// e^x for x <= 0, within a few units of FP32's last place for every weight that counts. Replaces the one of tile/math.cuh.
inline float weight_of(float x) {
  constexpr float kLog2E = 1.44269504088896341f;
  return arch::exp2(x * kLog2E);
}

inline float combine(Sum, float a, float b) {
  return a + b;
}
inline float combine(Max, float a, float b) {
  return max(a, b);
}
inline float combine(Min, float a, float b) {
  return min(a, b);
}
inline float identity(Sum) {
  return 0;
}
inline float identity(Max) {
  return -__int_as_float(0x7f800000);
}
inline float identity(Min) {
  return __int_as_float(0x7f800000);
}

inline float from_bf16(u16 bits) {
  return __uint_as_float(u32(bits) << 16);
}
inline float from_f16(u16 bits) {
  return arch::from_f16(bits);
}
inline u16 to_bf16(float value) {
  return arch::to_bf16(value);
}
inline u16 to_f16(float value) {
  return arch::to_f16(value);
}

// Loads an element as a float without a branch: it loads the element's 32-bit word whatever the dtype, so that several loads may be
// under way together. Codes of 8 bits are loaded as parts of products (matmul_load.cuh); an op that would read them here is refused.
inline float load_element(DType dtype, const u8* data, i64 j) {
  const u8* at = data + j * size_of(dtype);
  const u32 inside = u32(reinterpret_cast<u64>(at)) & 3;
  const u32 word = *reinterpret_cast<const u32*>(at - inside), shifted = word >> (8 * inside);
  float value = __uint_as_float(word);
  value = dtype == DType::kBf16 ? __uint_as_float(shifted << 16) : value;
  value = dtype == DType::kF16 ? from_f16(u16(shifted)) : value;
  return dtype == DType::kU8 ? float(shifted & 0xff) : value;
}

inline void store_element(DType dtype, u8* data, i64 j, float value) {
  switch (dtype) {
    case DType::kF32:
      reinterpret_cast<float*>(data)[j] = value;
      return;
    case DType::kI32:
      reinterpret_cast<i32*>(data)[j] = __float_as_int(value);
      return;
    case DType::kU8:
      data[j] = u8(value);
      return;
    case DType::kBf16:
      reinterpret_cast<u16*>(data)[j] = to_bf16(value);
      return;
    case DType::kF16:
      reinterpret_cast<u16*>(data)[j] = to_f16(value);
      return;
  }
}

// Packs two elements of a 16-bit dtype in a word, the first in the low bits.
inline u32 pack_two(DType dtype, float first, float second) {
  return dtype == DType::kBf16 ? arch::pack_bf16(first, second) : arch::pack_f16(first, second);
}

inline float round_to(DType dtype, float value) {
  if (dtype == DType::kBf16) return from_bf16(to_bf16(value));
  if (dtype == DType::kF16) return from_f16(to_f16(value));
  return value;
}

// The elements of 16 bytes, as floats.
template <DType kType>
struct Packed {
  static constexpr i32 kCount = 16 / size_of(kType);
  float value[kCount];

  explicit Packed(uint4 bits) {
    const u32 words[4] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
    for (i32 i = 0; i < 4; ++i) {
      if constexpr (kType == DType::kF32) {
        value[i] = __uint_as_float(words[i]);
      } else if constexpr (kType == DType::kBf16) {
        value[2 * i] = __uint_as_float(words[i] << 16);
        value[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
      } else {
        value[2 * i] = from_f16(u16(words[i]));
        value[2 * i + 1] = from_f16(u16(words[i] >> 16));
      }
    }
  }
};

}  // namespace heddle::device
