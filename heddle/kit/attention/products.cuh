// The products of attention by four warps together, from chip: scores of 64 rows with a block of positions, and weights times values.
// What they read lies in slabs of 64 columns, of 128 bytes a row. They are under way until arch::wait_products().
#pragma once

#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/arch/wgmma.cuh"
#include "heddle/kit/arch/wgmma_products.cuh"

namespace heddle::device {

template <i32 kCount>
inline void keep_fragments(u32 (&fragments)[kCount][4]) {
#pragma unroll
  for (i32 i = 0; i < kCount; ++i) arch::keep(fragments[i]);
}

// scores = q k^T for heads of kDim elements. A slab of queries has kRows rows, one of keys kKeys.
template <arch::Terms kTerms, i32 kDim, i32 kRows, i32 kKeys>
__forceinline__ void multiply_queries(float (&scores)[kKeys / 2], arch::OnChip queries, arch::OnChip keys) {
  arch::keep(scores);
  arch::begin_products();
  const u64 q = arch::descriptor(queries), k = arch::descriptor(keys);
#pragma unroll
  for (i32 i = 0; i < kDim / 16; ++i)
    arch::multiply<kTerms, arch::Major::kK, arch::Major::kK>(
        scores, q + (i / 4 * kRows * 128 + i % 4 * 32) / 16, k + (i / 4 * kKeys * 128 + i % 4 * 32) / 16,
        i > 0);
  arch::commit_products();
}

// sums += weights v, or without `add`, sums = weights v. `values`: the descriptor of the first of 16 kCount rows.
template <arch::Terms kTerms, i32 kSums, i32 kCount>
__forceinline__ void multiply_weights(float (&sums)[kSums], u32 (&weights)[kCount][4], u64 values, bool add) {
  arch::keep(sums);
  keep_fragments(weights);
  arch::begin_products();
#pragma unroll
  for (i32 i = 0; i < kCount; ++i)
    arch::multiply<kTerms, arch::Major::kOuter>(sums, weights[i], values + i * 2048 / 16, add || i > 0);
  arch::commit_products();
}

}  // namespace heddle::device
