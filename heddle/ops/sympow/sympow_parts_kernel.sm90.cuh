// Parts of the whole kernels of sympow_mma and its gradient.
#pragma once

#include "heddle/kit/arch/bulk.cuh"
#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/kernel.cuh"

namespace heddle::device::sympow_parts {

// The rows of a CTA in the tile of its cluster.
template <i32 kRows, i32 kCluster, i32 kBlocks>
struct RowTile {
  i32 b, h, begin, end, state;  // rows [begin, end) of x; the first row of the state

  template <class Args>
  RowTile(const Args& a, i32 tile, u32 rank) {
    const ChunkTiles chunks = a.tiles();
    const i32 height = kRows * kCluster, per = (chunks.chunk + height - 1) / height;
    const i32 head = tile / (per * chunks.chunks()), in = tile % (per * chunks.chunks()), chunk = in / per;
    b = head / a.x.size[2], h = head % a.x.size[2];
    begin = chunks.chunk_begin(chunk) + (in % per * kCluster + i32(rank)) * kRows;
    end = chunks.chunk_end(chunk);
    state = chunk * kBlocks * 64;
  }
  template <class Args>
  static i32 tiles(const Args& a) {
    const ChunkTiles chunks = a.tiles();
    const i32 height = kRows * kCluster;
    return a.x.size[0] * a.x.size[2] * chunks.chunks() * ((chunks.chunk + height - 1) / height);
  }
};

// Brings 64 rows of a state, in boxes of 64 columns: each CTA of a cluster brings its rows to all.
template <i32 kCluster, i32 kWide, class Tile>
inline void bring_block(arch::OnChip to, arch::OnChip full, const TensorMap* map, const Tile& at, i32 row,
                        u32 rank) {
  constexpr i32 kMine = 64 / kCluster;
  constexpr u16 kAll = (1 << kCluster) - 1;
#pragma unroll
  for (i32 wide = 0; wide < kWide; ++wide) {
    const arch::OnChip there = to + (wide * 64 * 128 + rank * kMine * 128);
    const arch::Corner4 from{wide * 64, row + i32(rank) * kMine, at.h, at.b};
    if constexpr (kCluster > 1)
      arch::load_box_to(kAll, there, map, full, from);
    else
      arch::load_box(there, map, full, from);
  }
}

// Brings the blocks of a tile's state in the order of use, kPer to a stage: for power 4 in their own order.
template <i32 kPower, i32 kTiles, i32 kPer, i32 kCluster, i32 kWide, class Ring, class Tile>
inline void bring_state(const Ring& ring, typename Ring::Place& place, const TensorMap* map, const Tile& at,
                        u32 rank) {
  i32 count = 0;
  const auto bring = [&](i32 block) {
    if (count == 0) ring.begin(place);
    bring_block<kCluster, kWide>(ring.slot(place) + count * (kWide * 64 * 128), ring.full(place), map, at,
                                 at.state + block * 64, rank);
    if (++count == kPer) count = 0, place.next();
  };
  if constexpr (kPower == 4) {
#pragma unroll 1
    for (i32 block = 0; block < sympow_width(kPower, 8 * kTiles) / kSympowGroup; ++block) bring(block);
  } else {
#pragma unroll 1
    for (i32 s0 = 0; s0 < kTiles; ++s0)
#pragma unroll 1
      for (i32 q = 0; q <= s0; ++q) bring(s0 * (s0 + 1) / 2 + (q == 0 ? s0 : q - 1));
  }
}

}  // namespace heddle::device::sympow_parts
