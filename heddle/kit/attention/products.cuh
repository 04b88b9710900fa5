// The products of attention by four warps together: scores of 64 rows with a block of positions, and weights times values.
// They are under way until arch::wait_products().
#pragma once

#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/arch/wgmma.cuh"
#include "heddle/kit/arch/wgmma_products.cuh"
#include "heddle/kit/move/tile_mma.cuh"

namespace heddle::device {

// scores = q k' for heads of kDim elements. `queries`: where the group's 64 rows begin.
template <arch::Terms kTerms, i32 kDim, tile::OperandTile kQueries, tile::OperandTile kKeys>
__forceinline__ void multiply_queries(float (&scores)[kKeys.rows / 2], arch::OnChip queries,
                                      arch::OnChip keys) {
  arch::keep(scores);
  arch::begin_products();
  tile_mma<kTerms, kQueries, kKeys, kDim / 16>(scores, arch::descriptor<kQueries>(queries),
                                               arch::descriptor<kKeys>(keys), false);
  arch::commit_products();
}

// sums += weights v, or without `add`, sums = weights v. `values`: the descriptor of the first of 16 kCount rows.
template <arch::Terms kTerms, tile::OperandTile kValues, i32 kSums, i32 kCount>
__forceinline__ void multiply_weights(float (&sums)[kSums], u32 (&weights)[kCount][4], u64 values, bool add) {
  arch::keep(sums);
  keep_fragments(weights);
  arch::begin_products();
  tile_mma<kTerms, kValues.turned()>(sums, weights, values, add);
  arch::commit_products();
}

}  // namespace heddle::device
