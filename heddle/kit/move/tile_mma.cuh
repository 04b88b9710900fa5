// Products of tiles by four warps together: their steps along k follow from the operands' tiles (tile/mma_plan.h). They are under way
// from arch::commit_products() to arch::wait_products().
#pragma once

#include "heddle/kit/arch/wgmma_products.cuh"

namespace heddle::device {

template <i32 kCount>
inline void keep_fragments(u32 (&fragments)[kCount][4]) {
#pragma unroll
  for (i32 i = 0; i < kCount; ++i) arch::keep(fragments[i]);
}

// The `i`th 32 bytes of k of an operand.
template <tile::OperandTile kTile>
inline u64 step_of(u64 operand, i32 i) {
  return operand + tile::step_bytes(kTile, i) / 16;
}

// sums[64, 2 kSums] = a b', or sums += a b' where `add`, over kSteps times 32 bytes of k.
template <arch::Terms kTerms, tile::OperandTile kA, tile::OperandTile kB,
          i32 kSteps = kB.depth* kB.element_bytes / 32, i32 kSums>
__forceinline__ void tile_mma(float (&sums)[kSums], u64 a, u64 b, bool add) {
#pragma unroll
  for (i32 i = 0; i < kSteps; ++i)
    arch::multiply<kTerms, kA.major, kB.major>(sums, step_of<kA>(a, i), step_of<kB>(b, i), add || i > 0);
}
// The left operand may lie in registers, a fragment for each 32 bytes of k.
template <arch::Terms kTerms, tile::OperandTile kB, i32 kSums, i32 kSteps>
__forceinline__ void tile_mma(float (&sums)[kSums], const u32 (&a)[kSteps][4], u64 b, bool add) {
#pragma unroll
  for (i32 i = 0; i < kSteps; ++i)
    arch::multiply<kTerms, kB.major>(sums, a[i], step_of<kB>(b, i), add || i > 0);
}

}  // namespace heddle::device
