// Products of four warps with both operands on chip, of an emulated GPU: done when they are waited for, as late as may be.
#pragma once

namespace heddle::device::arch {

constexpr bool kMultipliesOnChip = true;

inline void show_copies() {}
inline void begin_products() {}

inline thread_local std::map<u32, std::vector<std::vector<std::function<void()>>>>
    products;  // by thread: groups
inline auto& products_of_thread() {
  auto& groups = products[threadIdx.x];
  if (groups.empty()) groups.emplace_back();  // the one that is not committed yet
  return groups;
}
inline void commit_products() {
  products_of_thread().emplace_back();
}
template <i32 kLeft>
inline void wait_products() {
  auto& groups = products_of_thread();
  while (groups.size() > size_t(kLeft) + 1) {
    for (const auto& product : groups.front()) product();
    groups.erase(groups.begin());
  }
}

// Element k of a row of a slab, whose words are permuted by bits of their address.
template <bool kBf16>
inline float slab_element(const u8* words, u32 row, u32 k) {
  u64 at = reinterpret_cast<u64>(words) + row * 128 + k / 8 * 16;
  at ^= (at >> 7 & 7) << 4;
  const u16 bits = reinterpret_cast<const u16*>(at)[k % 8];
  return kBf16 ? from_bf16_bits(bits) : from_f16(bits);
}
template <bool kBf16, i32 kBlocks>
inline void multiply_on_chip(float (&sums)[kBlocks][4], OnChip left, OnChip right) {
  const u32 lane = threadIdx.x % 32, first = threadIdx.x / 32 % 4 * 16 + lane / 4;
  float(*to)[4] = sums;
  products_of_thread().back().push_back([=] {
    for (u32 j = 0; j < u32(kBlocks); ++j)
      for (u32 i = 0; i < 4; ++i)
        for (u32 k = 0; k < 16; ++k)
          to[j][i] += slab_element<kBf16>(left.at, first + i / 2 * 8, k) *
                      slab_element<kBf16>(right.at, 8 * j + lane % 4 * 2 + i % 2, k);
  });
}

}  // namespace heddle::device::arch
