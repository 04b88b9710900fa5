// Parts of the whole kernels of sympow_mma, its gradient and mma_sympow.
#pragma once

#include "heddle/kit/arch/bulk.cuh"
#include "heddle/kit/arch/cluster.cuh"
#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/arch/pairs.cuh"
#include "heddle/kit/arch/wgmma.cuh"
#include "heddle/kit/arch/wgmma_products.cuh"
#include "heddle/kit/kernel.cuh"
#include "heddle/kit/move/chip.cuh"
#include "heddle/kit/move/next_tile.cuh"
#include "heddle/kit/move/roles.cuh"
#include "heddle/kit/move/slot_ring.cuh"
#include "heddle/kit/move/store_tile.cuh"
#include "heddle/ops/sympow/chunk_tiles.h"
#include "heddle/ops/sympow/sympow_columns.h"
#include "heddle/ops/sympow/sympow_memory.h"

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

// init() makes barriers in one thread; then one brings, produce(rank), while groups of four warps multiply(rank).
template <class Kernel, i32 kCluster, class Init, class Produce, class Multiply>
inline void run_roles(Init&& init, Produce&& produce, Multiply&& multiply) {
  if (threadIdx.x == 0) init();
  if constexpr (kCluster > 1)
    arch::sync_cluster();
  else
    __syncthreads();
  const u32 rank = kCluster > 1 ? arch::cta_in_cluster() : 0;
  if (threadIdx.x < 128) {
    enter<Kernel, "bring">();
    if (threadIdx.x == 0) produce(rank);
  } else {
    enter<Kernel, "multiply">();
    multiply(rank);
  }
  if constexpr (kCluster > 1) arch::sync_cluster();  // nobody leaves while others may arrive here
}

// Gives a stage back to all CTAs that bring a part of it; `member`: of the group.
template <i32 kCluster, class Ring>
inline void release_stage(const Ring& ring, const typename Ring::Place& done, u32 member) {
  if (member < u32(kCluster)) {
    if constexpr (kCluster > 1)
      ring.release_at(done, member);
    else
      ring.release(done);
  }
}

// The frame of sympow_mma and its gradient: groups of four warps have 64 rows of x each, which have boxes of 64 columns, of map 1, too
// where kHasColumns. The last map is the state's. A group has kFactBytes on chip, for Kernel::multiply(rows, ring, facts, a, rank).
template <class Kernel, class Config, class Args, i32 kBlocksOfStage, bool kHasColumns, i32 kFactBytes>
struct Frame {
  static constexpr Args kTypes = Config::types();
  static constexpr DType kType = kTypes.x.dtype;
  static constexpr arch::Terms kTerms = kType == DType::kBf16 ? arch::Terms::kBf16 : arch::Terms::kF16;
  static constexpr i32 kTiles = Config::kTiles, kColumns = Config::kColumns, kGroups = Config::kGroups;
  static constexpr i32 kCluster = Config::kCluster, kPower = Config::kPower, kPer = kBlocksOfStage;
  static constexpr i32 kBlocks = i32(sympow_width(kPower, 8 * kTiles) / kSympowGroup);
  static constexpr i32 kWide = (kColumns + 63) / 64;  // boxes of 64 columns of the state
  static constexpr i32 kWideRows = (kTiles + 7) / 8;  // boxes of 64 elements of x
  static constexpr i32 kRows = 64 * kGroups, kBoxes = kHasColumns ? kWideRows + kWide : kWideRows;
  static constexpr u32 kBox = 64 * 128, kBlock = kWide * kBox, kRowBytes = kRows * 128;
  static constexpr tile::Budget kBudget =
      sympow_budget({kGroups, 2, kBoxes, kPer* kWide, kGroups* kFactBytes}, Config::kStages);
  static constexpr u32 kThreads = kBudget.threads();
  // Rows of a CTA, and 64 rows of the state: their boxes lie one after the other.
  static constexpr tile::OperandTile kRowTile{kRows, 64 * kBoxes, 2}, kStateTile{64, 64 * kWide, 2};
  using Ring = SlotRing<Config::kStages, kPer * kBlock>;
  using RowRing = SlotRing<2, kBoxes * kRowBytes>;
  using Place = RowTile<kRows, kCluster, kBlocks>;

  static void run(const Args& a, const TensorMap* maps, u8*) {
    const arch::OnChip facts = chip() + kBudget.offset("facts");
    const RowRing rows{chip() + kBudget.offset("rows"), chip() + kBudget.offset("of rows")};
    const Ring ring{chip() + kBudget.offset("ring"), chip() + kBudget.offset("of ring")};
    run_roles<Kernel, kCluster>([&] { rows.init(kGroups), ring.init(kGroups * kCluster); },
                                [&](u32 rank) { produce(rows, ring, a, maps, rank); },
                                [&](u32 rank) { Kernel::multiply(rows, ring, facts, a, rank); });
  }

  static void produce(const RowRing& rows, const Ring& ring, const Args& a, const TensorMap* maps, u32 rank) {
    typename RowRing::Place x;
    typename Ring::Place place;
    const EveryTile<kCluster> mine;
    const i32 all = Place::tiles(a);
#pragma unroll 1
    for (i32 t = mine.first; t < all; t += mine.stride) {
      const Place at(a, t, rank);
      rows.begin(x);
#pragma unroll
      for (i32 wide = 0; wide < kBoxes; ++wide)
#pragma unroll 1
        for (i32 row = 0; row < kRows; row += 64) {
          const bool of_x = wide < kWideRows;
          arch::load_box(rows.slot(x) + (wide * kRowBytes + row * 128), maps + (of_x ? 0 : 1), rows.full(x),
                         arch::Corner4{(of_x ? wide : wide - kWideRows) * 64, at.h, at.begin + row, at.b});
        }
      x.next();
      bring_state<kPower, kTiles, kPer, kCluster, kWide>(ring, place, maps + (kHasColumns ? 2 : 1), at, rank);
    }
  }

  // A thread has pairs of two rows of x, 8 rows apart: one of each tile.
  struct RowPairs {
    arch::OnChip mine;  // place of pair 0 of tile 0 of the first row
    u32 swizzle;        // both rows have it

    u32 place(i32 row, i32 s) const {
      const u32 tile = u32(s), wide = kWideRows > 1 ? tile / 8 * kRowBytes : 0;
      return row * 1024 + wide + (((kWideRows > 1 ? tile % 8 : tile) ^ swizzle) * 16);
    }
    u32 pair(i32 row, i32 s) const { return arch::load_pair(mine + place(row, s)); }
    // Element i of tile s.
    float element(i32 row, i32 s, i32 i) const {
      const u32 of_row = mine.at - lane() % 4 * 4;
      const float2 both = unpack_pair<kType>(arch::load_pair({of_row + place(row, s) + u32(i) / 2 * 4}));
      return i % 2 == 0 ? both.x : both.y;
    }
  };
};

}  // namespace heddle::device::sympow_parts
