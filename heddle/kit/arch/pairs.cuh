// Pairs of 16-bit floats in a register, the first in the low bits, on sm_90 and later.
#pragma once

#include "heddle/base/dtype.h"
#include "heddle/kit/arch/on_chip.cuh"

namespace heddle::device::arch {

template <DType kType>
inline u32 multiply_pairs(u32 a, u32 b) {
  u32 product;
  if constexpr (kType == DType::kBf16)
    asm volatile("mul.rn.bf16x2 %0, %1, %2;" : "=r"(product) : "r"(a), "r"(b));
  else
    asm volatile("mul.rn.f16x2 %0, %1, %2;" : "=r"(product) : "r"(a), "r"(b));
  return product;
}

// The square root of 2, twice.
template <DType kType>
constexpr u32 kRootsOfTwo = kType == DType::kBf16 ? 0x3FB53FB5u : 0x3DA83DA8u;

inline u32 load_pair(OnChip from) {
  u32 pair;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(pair) : "r"(from.at));
  return pair;
}

// A float on chip.
inline float load_float(OnChip from) {
  float value;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(from.at) : "memory");
  return value;
}
// Begins to copy one from memory; commit_copies() ends a group of copies of this thread.
inline void copy_float(OnChip to, const float* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to.at), "l"(from) : "memory");
}
// Waits until at most kLeft groups of copies are under way.
template <i32 kLeft>
inline void wait_copies_but() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

// Four floats on chip, at a multiple of 16 bytes.
inline float4 load_floats(OnChip from) {
  const uint4 bits = load_word(from);
  return {__uint_as_float(bits.x), __uint_as_float(bits.y), __uint_as_float(bits.z), __uint_as_float(bits.w)};
}
inline void store_floats(OnChip to, const float4& values) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to.at), "f"(values.x), "f"(values.y),
               "f"(values.z), "f"(values.w)
               : "memory");
}

}  // namespace heddle::device::arch
