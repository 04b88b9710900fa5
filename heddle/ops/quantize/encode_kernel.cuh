// Codes in whole kernels, by the hardware's conversions where it has them. Included inside the namespace of each.

// Two codes of a kind in the low half of a word, the first one lower.
template <i32 kCode>
inline u32 two_codes(float first, float second) {
  if constexpr (arch::kRoundsToCodes && kCode == kCodeE4M3) return arch::pack_e4m3(first, second);
  if constexpr (arch::kRoundsToCodes && kCode == kCodeE5M2) return arch::pack_e5m2(first, second);
  return u32(code_of(first, kCode) | code_of(second, kCode) << 8);
}

// Stores the `at`-th eight codes of a row. get(i): element i; each is multiplied by `inverse`.
template <i32 kCode, class Get>
inline void store_codes(u8* row, i32 at, float inverse, Get&& get) {
  u32 words[2];
#pragma unroll
  for (i32 w = 0; w < 2; ++w)
    words[w] = two_codes<kCode>(get(4 * w) * inverse, get(4 * w + 1) * inverse) |
               two_codes<kCode>(get(4 * w + 2) * inverse, get(4 * w + 3) * inverse) << 16;
  reinterpret_cast<uint2*>(row)[at] = {words[0], words[1]};
}
