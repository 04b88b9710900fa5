// One op by itself: a CTA for each tile of one call. Arguments are a parameter of the kernel, a tile follows from the
// number of its CTA. There is no program, no step record and no ring: the launch orders what the call reads, bodies read
// packed weights from memory, and nothing is left to clear. All threads compute.
#pragma once

#include "heddle/backend/cuda/device/chain.cuh"
#include "heddle/backend/cuda/device/standalone.h"

namespace heddle::device {

struct StandaloneEdges {
  void wait() {}
  void dead() {}
};

// The tile of CTA `number`. kRange: whether each axis is a range, of two coordinates, or an index, of one.
template <bool... kRange>
inline TileCoord tile_of(const OpGrid& grid, u32 number) {
  constexpr bool is_range[] = {kRange...};
  constexpr int axes = sizeof...(kRange);
  static_assert(axes <= kMostAxes);
  TileCoord tile;
  int at = (0 + ... + (kRange ? 2 : 1));
#pragma unroll
  for (int a = axes - 1; a >= 0; --a) {
    const GridAxis& axis = grid.axes[a];
    const i32 begin = i32(a > 0 ? number % axis.tiles : number) * axis.step;
    if (a > 0) number /= axis.tiles;
    if (is_range[a]) tile[--at] = begin + min(axis.step, axis.extent - begin);
    tile[--at] = begin;
  }
  return tile;
}

template <class Main, bool... kRange>
__forceinline__ void run_standalone(const OpGrid& grid, const typename Main::Args& args) {
  const TileCoord tile = tile_of<kRange...>(grid, blockIdx.x);
  Block<StandaloneEdges> block({}, {grid.chip_bytes, grid.spill}, tile[1] - tile[0]);
  Chain<Main> chain{reinterpret_cast<const u8*>(&args)};
  run_chain<Main>(block, chain, tile);
}

}  // namespace heddle::device
