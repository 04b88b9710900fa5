// The kernel of one op by itself: one CTA per tile of one call. The arguments are a parameter of the kernel, and a CTA computes its
// tile from its number. There is no program, no step record and no ring: stream order makes inputs ready, bodies read packed
// weights from memory, and a launch leaves nothing to clear. All threads compute.
#pragma once

#include "heddle/backend/cuda/device/chain.cuh"
#include "heddle/backend/cuda/device/standalone.h"

namespace heddle::device {

struct StandaloneEdges {
  void wait() {}
  void dead() {}
};

// The tile of CTA `number`. kRange says of each axis whether it is a range, with two coordinates, or an index, with one.
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
__forceinline__ void run_standalone(const OpGrid& grid, const typename Main::Args& args, const char* op) {
  const TileCoord tile = tile_of<kRange...>(grid, blockIdx.x);
  Block<StandaloneEdges> block({}, {grid.chip_bytes, grid.spill, op}, tile[1] - tile[0]);
  Chain<Main> chain{reinterpret_cast<const u8*>(&args)};
  run_chain<Main>(block, chain, tile);
}

}  // namespace heddle::device
