// Pairs of 16-bit floats in a register, the first in the low bits, on sm_90 and later.
#pragma once

#include "heddle/backend/cuda/arch/common.cuh"
#include "heddle/base/dtype.h"

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

}  // namespace heddle::device::arch
