// Parts of the whole kernels of power attention.
#pragma once

#include "heddle/kit/arch/bulk.cuh"
#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/arch/wgmma.cuh"
#include "heddle/kit/arch/wgmma_products.cuh"
#include "heddle/kit/kernel.cuh"
#include "heddle/kit/move/chip.cuh"
#include "heddle/kit/move/roles.cuh"
#include "heddle/kit/move/slot_ring.cuh"
#include "heddle/ops/sympow/chunk_tiles.h"
#include "heddle/ops/sympow/sympow_memory.h"

namespace heddle::device::power_attention_parts {

// The number of tiles of kRows positions.
template <i32 kRows, class Args>
inline i32 tiles_of(const Args& a) {
  const ChunkTiles chunks = a.tiles();
  return a.q.size[0] * a.q.size[2] * chunks.chunks() * ((chunks.chunk + kRows - 1) / kRows);
}

// A tile of queries, with the blocks of kKeys keys that it reads. Tiles of a chunk come with the longest first.
template <i32 kRows, i32 kKeys>
struct QueryTile {
  i32 b, h, chunk_begin, begin, end;  // queries [begin, end) and further ones of the chunk

  template <class Args>
  QueryTile(const Args& a, i32 tile) {
    const ChunkTiles chunks = a.tiles();
    const i32 per = (chunks.chunk + kRows - 1) / kRows, all = per * chunks.chunks();
    const i32 chunk = tile % all / per;
    b = tile / all / a.q.size[2], h = tile / all % a.q.size[2];
    chunk_begin = chunks.chunk_begin(chunk), end = chunks.chunk_end(chunk);
    begin = chunk_begin + (per - 1 - tile % per) * kRows;
  }
  i32 block(i32 n) const { return chunk_begin + n * kKeys; }
  // Blocks of keys that the tile reads; 0 for one that the last chunk does not reach.
  i32 blocks() const { return begin < end ? (min(begin + kRows, end) - chunk_begin + kKeys - 1) / kKeys : 0; }
};

// The sum of the gates of a position, within the tensor.
template <class Args, class Place>
inline float gate_of(const Args& a, const Place& at, i32 t) {
  const i32 inside = min(t, a.l.size[1] - 1);
  return reinterpret_cast<const float*>(a.l.data)[at.b * a.l.stride[0] + inside * a.l.stride[1] + at.h];
}

// The frame of the kernels: groups of four warps have 64 rows each of a tile, and one thread brings the tile and blocks of 64 other
// rows. A row is boxes of 64 of its elements, and then of 64 columns. Kernel has
//   Place                        a tile, and where its blocks begin: block(n)
//   kOwnMaps[2], kBlockMaps[2]   maps of elements and columns: of the tile's rows, which have no columns where kOwnColumns is
//                                false, and of blocks
//   multiply(own, ring, facts, a, workspace)   a group has kFactBytes of facts on chip
template <class Kernel, class Config, class Args, i32 kGroupCount, i32 kSlots, bool kOwnColumns,
          i32 kFactBytes>
struct Frame {
  static constexpr Args kTypes = Config::types();
  static constexpr DType kType = kTypes.q.dtype;
  static constexpr arch::Terms kTerms = kType == DType::kBf16 ? arch::Terms::kBf16 : arch::Terms::kF16;
  static constexpr i32 kWideRows = Config::kWideRows, kColumns = Config::kColumns, kGroups = kGroupCount;
  static constexpr i32 kBlock = 64, kRows = 64 * kGroups, kWide = (kColumns + 63) / 64, kDim = kWideRows * 64;
  static constexpr i32 kBoxes = kWideRows + kWide, kOwnBoxes = kOwnColumns ? kBoxes : kWideRows;
  static constexpr u32 kBox = 64 * 128, kRowBytes = kRows * 128;
  static constexpr tile::Budget kBudget =
      sympow_budget({kGroups, kSlots, kOwnBoxes, kBoxes, kGroups* kFactBytes}, Config::kStages);
  static constexpr u32 kThreads = kBudget.threads();
  // Rows of the tile, and of a block: their elements, and their columns.
  static constexpr tile::OperandTile kOwnTile{kRows, kDim, 2}, kKeyTile{kBlock, kDim, 2},
      kValueTile{kBlock, kWide * 64, 2};
  using Ring = SlotRing<Config::kStages, kBoxes * kBox>;
  using Own = SlotRing<kSlots, kOwnBoxes * kRowBytes>;

  static void run(const Args& a, const TensorMap* maps, u8* workspace) {
    const arch::OnChip facts = chip() + kBudget.offset("facts");
    const Own own{chip() + kBudget.offset("rows"), chip() + kBudget.offset("of rows")};
    const Ring ring{chip() + kBudget.offset("ring"), chip() + kBudget.offset("of ring")};
    if (threadIdx.x == 0) own.init(kGroups), ring.init(kGroups);
    __syncthreads();
    if (threadIdx.x < 128) {
      enter<Kernel, "bring">();
      if (threadIdx.x == 0) produce(own, ring, a, maps);
    } else {
      enter<Kernel, "multiply">();
      Kernel::multiply(own, ring, facts, a, reinterpret_cast<const float2*>(workspace));
    }
  }

  static void produce(const Own& own, const Ring& ring, const Args& a, const TensorMap* maps) {
    typename Own::Place o;
    typename Ring::Place place;
    const i32 all = tiles_of<kRows>(a);
#pragma unroll 1
    for (i32 t = i32(blockIdx.x); t < all; t += i32(gridDim.x)) {
      const typename Kernel::Place at(a, t);
      const i32 blocks = at.blocks();
      if (blocks == 0) continue;
      own.begin(o);
#pragma unroll
      for (i32 wide = 0; wide < kOwnBoxes; ++wide)
#pragma unroll 1
        for (i32 row = 0; row < kRows; row += 64)
          arch::load_box(own.slot(o) + (wide * kRowBytes + row * 128),
                         maps + Kernel::kOwnMaps[wide >= kWideRows], own.full(o),
                         arch::Corner4{first_of(wide), at.h, at.begin + row, at.b});
      o.next();
#pragma unroll 1
      for (i32 n = 0; n < blocks; ++n, place.next()) {
        ring.begin(place);
#pragma unroll
        for (i32 box = 0; box < kBoxes; ++box)
          arch::load_box(ring.slot(place) + box * kBox, maps + Kernel::kBlockMaps[box >= kWideRows],
                         ring.full(place), arch::Corner4{first_of(box), at.h, at.block(n), at.b});
      }
    }
  }
  // The first element or column of a box.
  static constexpr i32 first_of(i32 box) { return (box < kWideRows ? box : box - kWideRows) * 64; }

  // Rows of the tile's slot times rows of a block.
  template <i32 kSteps>
  static void product(float (&to)[kBlock / 2], arch::OnChip left, arch::OnChip right) {
#pragma unroll
    for (i32 i = 0; i < kSteps; ++i)
      arch::multiply<kTerms, kOwnTile.major, kKeyTile.major>(
          to, arch::descriptor<kOwnTile>(left + tile::step_bytes(kOwnTile, i)),
          arch::descriptor<kKeyTile>(right + tile::step_bytes(kKeyTile, i)), i > 0);
  }
};

}  // namespace heddle::device::power_attention_parts
