// Boxes of tensor maps follow from the layout that they have in shared memory.
#pragma once

#include "heddle/ir/kernel.h"
#include "heddle/tile/mma_plan.h"

namespace heddle {

inline BoxSwizzle swizzle_of(const tile::OperandTile& tile) {
  return tile.span == 128  ? BoxSwizzle::k128
         : tile.span == 64 ? BoxSwizzle::k64
         : tile.span == 32 ? BoxSwizzle::k32
                           : BoxSwizzle::kNone;
}

}  // namespace heddle
