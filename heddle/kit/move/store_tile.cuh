// Sums of four warps (kit/arch/wgmma_products.cuh) go to memory through shared memory and bulk stores, which clip at the tensor's end.
#pragma once

#include "heddle/kit/arch/bulk.cuh"
#include "heddle/kit/arch/matrices.cuh"
#include "heddle/kit/arch/numbers.cuh"
#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/arch/thread.cuh"
#include "heddle/kit/move/store_pair.cuh"
#include "heddle/tile/mma_plan.h"

namespace heddle::device {

template <DType kType>
inline float2 unpack_pair(u32 pair) {
  static_assert(kType == DType::kBf16 || kType == DType::kF16);
  if constexpr (kType == DType::kBf16)
    return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u)};
  else
    return {arch::from_f16(u16(pair)), arch::from_f16(u16(pair >> 16))};
}

// 64 rows of a box of a bulk store, as a group of four warps leaves its sums.
constexpr tile::OperandTile stored_box(DType type) {
  return {64, 128 / size_of(type), size_of(type)};
}

// Writes sums[64, 2 kSums] of four warps to `stage`, box after box.
template <DType kType, i32 kSums>
inline void stage_sums(const float (&sums)[kSums], arch::OnChip stage) {
  static constexpr tile::OperandTile kTile = stored_box(kType);
  const u32 warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  if constexpr (size_of(kType) == 2) {
    const u32 row = warp * 16 + lane % 16, word = lane / 16;
#pragma unroll
    for (i32 j = 0; j < kSums / 8; ++j) {  // 16 columns
      const float* s = sums + j * 8;
      const u32 column = kTile.permuted(j % 4 * 2 + word, row);
      arch::store_matrices(stage + (j / 4 * kTile.bytes() + row * kTile.span + column * 16),
                           pack_pair<kType>(s[0], s[1]), pack_pair<kType>(s[2], s[3]),
                           pack_pair<kType>(s[4], s[5]), pack_pair<kType>(s[6], s[7]));
    }
    if constexpr (kSums % 8 != 0) {  // 8 more columns
      constexpr i32 j = kSums / 8;
      const float* s = sums + j * 8;
      const u32 column = kTile.permuted(j % 4 * 2, row);
      arch::store_matrices(stage + (j / 4 * kTile.bytes() + row * kTile.span + column * 16),
                           pack_pair<kType>(s[0], s[1]), pack_pair<kType>(s[2], s[3]));
    }
  } else {
#pragma unroll
    for (i32 j = 0; j < kSums / 4; ++j)  // 8 columns
#pragma unroll
      for (i32 half = 0; half < 2; ++half) {
        const u32 row = warp * 16 + lane / 4 + half * 8;
        const u32 column = kTile.permuted(j % 4 * 2 + lane % 4 / 2, row);
        const arch::OnChip to =
            stage + (j / 4 * kTile.bytes() + row * kTile.span + column * 16 + lane % 2 * 8);
        arch::store_shared(to, sums[j * 4 + half * 2], sums[j * 4 + half * 2 + 1]);
      }
  }
}

// Stores sums from `at` on: a column, a row, and more where the map has more dimensions. The four warps call it with a named barrier of their own. The stage may be used
// again when the first thread's stores have read it, which the next call waits for.
template <DType kType, i32 kSums, class Corner>
inline void store_sums(const float (&sums)[kSums], arch::OnChip stage, const TensorMap* map, Corner at,
                       u32 barrier) {
  const bool is_leader = threadIdx.x % 128 == 0;
  if (is_leader) arch::wait_stores_read<0>();
  arch::sync_threads<128>(barrier);
  stage_sums<kType>(sums, stage);
  arch::show_to_copies();
  arch::sync_threads<128>(barrier);
  if (!is_leader) return;
  constexpr tile::OperandTile kTile = stored_box(kType);
#pragma unroll
  for (i32 j = 0; j < (2 * kSums + kTile.depth - 1) / kTile.depth; ++j, at.x += kTile.depth)
    arch::store_box(map, stage + j * kTile.bytes(), at);
  arch::commit_stores();
}

}  // namespace heddle::device
