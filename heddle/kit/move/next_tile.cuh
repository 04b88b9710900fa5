// The tiles of a whole kernel whose CTAs go from tile to tile.
#pragma once

#include "heddle/kit/value/value.cuh"

namespace heddle::device {

// The tiles of one cluster of kCluster CTAs: every so many, so that neighbours work on neighbouring tiles.
template <i32 kCluster>
struct EveryTile {
  i32 first, stride;

  EveryTile() : first(i32(blockIdx.x) / kCluster), stride(i32(gridDim.x) / kCluster) {}
};

// The place of tile `t` of rows x columns of tiles: groups of kGroup rows of tiles, so that what a wave of CTAs reads stays in the
// L2 cache; in a group, columns one after the other, and of each all rows.
template <i32 kGroup>
struct GroupedPlace {
  i32 m, n;

  GroupedPlace(i32 t, i32 rows, i32 columns) {
    const i32 group = t / (kGroup * columns), first = group * kGroup, height = min(kGroup, rows - first);
    const i32 in = t - group * kGroup * columns;
    m = first + in % height, n = in / height;
  }
};

}  // namespace heddle::device
