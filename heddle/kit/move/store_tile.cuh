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

// Writes sums of a transposed matrix: the four warps' 64 rows are the columns of boxes, and their columns the boxes' rows.
template <DType kType, i32 kSums>
inline void stage_transposed(const float (&sums)[kSums], arch::OnChip stage) {
  static constexpr tile::OperandTile kTile = stored_box(kType);
  static_assert(size_of(kType) == 2 && kSums % 32 == 0);
  const u32 warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
#pragma unroll
  for (i32 j = 0; j < kSums / 8; ++j) {  // 16 of the box's rows
    const float* s = sums + j * 8;
    const u32 row = u32(j % 4 * 16) + lane / 16 * 8 + lane % 8;
    arch::store_transposed(stage + (j / 4 * kTile.bytes() + row * kTile.span +
                                    kTile.permuted(2 * warp + lane / 8 % 2, row) * 16),
                           pack_pair<kType>(s[0], s[1]), pack_pair<kType>(s[2], s[3]),
                           pack_pair<kType>(s[4], s[5]), pack_pair<kType>(s[6], s[7]));
  }
}

// Stores sums from `at` on: a column, a row, and more where the map has more dimensions. The four warps call it with a named barrier of their own. The stage may be used
// again when the first thread's stores have read it, which the next call waits for.
template <DType kType, bool kTransposed = false, i32 kSums, class Corner>
inline void store_sums(const float (&sums)[kSums], arch::OnChip stage, const TensorMap* map, Corner at,
                       u32 barrier) {
  const bool is_leader = threadIdx.x % 128 == 0;
  if (is_leader) arch::wait_stores_read<0>();
  arch::sync_threads<128>(barrier);
  if constexpr (kTransposed)
    stage_transposed<kType>(sums, stage);
  else
    stage_sums<kType>(sums, stage);
  arch::show_to_copies();
  arch::sync_threads<128>(barrier);
  if (!is_leader) return;
  constexpr tile::OperandTile kTile = stored_box(kType);
#pragma unroll
  for (i32 j = 0; j < (2 * kSums + kTile.depth - 1) / kTile.depth; ++j) {
    arch::store_box(map, stage + j * kTile.bytes(), at);
    (kTransposed ? at.y : at.x) += kTile.depth;
  }
  arch::commit_stores();
}

// Stores sums from a row and a column on to a matrix whose rows begin anywhere, as far as it has them: words of 32 bits, row by
// row. A warp stores what it has staged itself, so that no group waits.
template <DType kType, i32 kSums>
inline void store_sums_anywhere(const float (&sums)[kSums], arch::OnChip stage, const Tensor& y, i32 row,
                                i32 column) {
  constexpr tile::OperandTile kTile = stored_box(kType);
  constexpr i32 kSize = size_of(kType), kColumns = 2 * kSums, kWords = kColumns * kSize / 4;
  const i32 width = min(kColumns, y.size[1] - column), begin = i32(threadIdx.x / 32 % 4) * 16;
  __syncwarp();  // all have read what it had
  stage_sums<kType>(sums, stage);
  __syncwarp();
#pragma unroll 4
  for (i32 r = begin; r < min(begin + 16, y.size[0] - row); ++r) {
    const auto word = [&](i32 w) {
      const u32 place = u32(w / 32 * kTile.bytes() + r * kTile.span + w % 4 * 4);
      return arch::load_shared(stage + (place + kTile.permuted(u32(w % 32 / 4), u32(r)) * 16));
    };
    u8* const to = y.data + ((row + r) * y.stride[0] + column) * kSize;
#pragma unroll
    for (i32 w = i32(threadIdx.x % 32); w < kWords; w += 32) {
      const u32 own = word(w);
      if constexpr (kSize == 4) {
        if (w < width) reinterpret_cast<u32*>(to)[w] = own;
      } else {
        // Where a row begins in the middle of a word of memory, each word has the end of one pair and the beginning of the next.
        const bool is_odd = reinterpret_cast<u64>(to) % 4 != 0;
        const u32 pair = is_odd ? own << 16 | (w > 0 ? word(w - 1) >> 16 : 0) : own;
        const i32 first = 2 * w - i32(is_odd);
        u16* const place = reinterpret_cast<u16*>(to) + first;
        const bool has_first = first >= 0 && first < width, has_second = first + 1 < width;
        if (has_first && has_second) {
          *reinterpret_cast<u32*>(place) = pair;
        } else {
          if (has_first) place[0] = u16(pair);
          if (has_second) place[1] = u16(pair >> 16);
        }
        if (is_odd && w == kWords - 1 && width == kColumns) place[2] = u16(own >> 16);
      }
    }
  }
}

}  // namespace heddle::device
