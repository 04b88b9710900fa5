// Codes of numbers. Included inside the namespace of each body of the family.

// A scale that makes `most` the largest code; NaN and infinity stay.
inline float scale_for(float most, i32 code) {
  return (most < 1e-30f ? 1e-30f : most) * (1.0f / kLargestCode[code]);
}

// Rounds to the nearest float of `mantissa` bits below 2^8 in size, ties to even; larger ones become the largest.
template <i32 kMantissa, i32 kBias>
inline i32 float_code(float x, float largest) {
  const u32 sign = __builtin_bit_cast(u32, x) >> 31 << 7;
  if (x != x) return i32(sign | 0x7f);
  float size = x < 0 ? -x : x;
  if (size > largest) size = largest;
  constexpr float kLeastNormal = __builtin_bit_cast(float, u32(128 - kBias) << 23);
  constexpr i32 kShift = 23 - kMantissa;
  u32 bits = __builtin_bit_cast(u32, size);
  if (size < kLeastNormal) {
    // The sum's last bits count in units of the least code.
    constexpr float kUnits = __builtin_bit_cast(float, u32(128 - kBias + kShift) << 23);
    return i32(sign | (__builtin_bit_cast(u32, size + kUnits) & 0xff));
  }
  bits += (1u << (kShift - 1)) - 1 + (bits >> kShift & 1);
  return i32(sign | ((bits >> kShift) - (u32(127 - kBias) << kMantissa)));
}

inline i32 code_of(float x, i32 code) {
  if (code == kCodeE4M3) return float_code<3, 7>(x, kLargestCode[kCodeE4M3]);
  if (code == kCodeE5M2) return float_code<2, 15>(x, kLargestCode[kCodeE5M2]);
  constexpr float kWhole = 12582912.0f;  // 1.5 * 2^23: the sum has no fraction
  const float bound = kLargestCode[kCodeI8], size = x > bound ? bound : x < -bound ? -bound : x;
  return (__builtin_bit_cast(i32, size + kWhole) - __builtin_bit_cast(i32, kWhole)) & 0xff;
}
