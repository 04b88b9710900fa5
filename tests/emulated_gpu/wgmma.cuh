// Products of four warps with both operands in shared memory, on an emulated GPU. They are computed when they
// are waited for, as late as possible.
#pragma once

#include "heddle/kit/arch/common.cuh"

namespace heddle::device::arch {

constexpr bool kMultipliesOnChip = true;

inline void show_copies() {}
inline void begin_products() {}

inline void commit_products() {
  emulated::end_group(emulated::Later::kProducts);
}
template <i32 kLeft>
inline void wait_products() {
  emulated::wait_groups(emulated::Later::kProducts, u32(kLeft));
}

template <bool kBf16>
inline float element_of(u64 word, u32 k) {
  const u16 bits = reinterpret_cast<const u16*>(word)[k];
  return kBf16 ? from_bf16_bits(bits) : from_f16(bits);
}
// The word of eight elements from k on in a row of 128 bytes, whose words are permuted by bits of their
// address.
inline u64 permuted_word(const u8* rows, u32 row, u32 k) {
  const u64 at = reinterpret_cast<u64>(rows) + row * 128 + k / 8 * 16;
  return at ^ (at >> 7 & 7) << 4;
}
template <bool kBf16, i32 kBlocks>
inline void multiply_on_chip(float (&sums)[kBlocks][4], OnChip left, OnChip right, u32 stride) {
  const u32 lane = threadIdx.x % 32, first = threadIdx.x / 32 % 4 * 16 + lane / 4;
  float(*to)[4] = sums;
  const auto word_of = [=](u32 row, u32 k) {
    return reinterpret_cast<u64>(right.at) + k / 8 * stride + row * 16;
  };
  emulated::do_later(emulated::Later::kProducts, emulated::work_of([=] {
                       for (u32 j = 0; j < u32(kBlocks); ++j)
                         for (u32 i = 0; i < 4; ++i)
                           for (u32 k = 0; k < 16; ++k)
                             to[j][i] +=
                                 element_of<kBf16>(permuted_word(left.at, first + i / 2 * 8, k), k % 8) *
                                 element_of<kBf16>(word_of(8 * j + lane % 4 * 2 + i % 2, k), k % 8);
                     }));
}

}  // namespace heddle::device::arch
