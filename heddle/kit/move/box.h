// Boxes of tensor maps follow from the layout that they have in shared memory.
#pragma once

#include <cstddef>

#include "heddle/ir/kernel.h"
#include "heddle/ir/matrices.h"
#include "heddle/tile/mma_plan.h"

namespace heddle {

inline BoxSwizzle swizzle_of(const tile::OperandTile& tile) {
  return tile.span == 128  ? BoxSwizzle::k128
         : tile.span == 64 ? BoxSwizzle::k64
         : tile.span == 32 ? BoxSwizzle::k32
                           : BoxSwizzle::kNone;
}

// The map of a matrix, or of a batch of them, at `address` of the arguments: its boxes are the blocks of a tile on chip.
inline KernelMap box_map(size_t address, const Tensor& data, const tile::OperandTile& tile) {
  const auto rank = size_t(data.rank);
  const i64 size = size_of(data.dtype);
  KernelMap map{.address = u32(address + offsetof(Tensor, data)), .dtype = data.dtype, .rank = data.rank};
  map.size[0] = data.size[rank - 1], map.size[1] = data.size[rank - 2];
  map.stride[1] = data.stride[rank - 2] * size;
  map.box[0] = tile.span_elements(), map.box[1] = tile.lines();
  map.swizzle = swizzle_of(tile);
  if (rank == 3) {
    // The distance of a single matrix is never used, and may be any multiple of 16 bytes.
    map.size[2] = data.size[0], map.box[2] = 1;
    map.stride[2] = data.size[0] == 1 ? 16 : data.stride[0] * size;
  }
  return map;
}

}  // namespace heddle
