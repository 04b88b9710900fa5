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

}  // namespace heddle::device
