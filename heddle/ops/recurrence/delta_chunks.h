// Where the positions of gated_delta_rule are cut. Read by host and device: no standard headers.
#pragma once

#include "heddle/base/types.h"

namespace heddle {

constexpr i32 kDeltaChunk = 32;  // positions; the state before each chunk is kept for the gradient

inline i32 delta_chunks(i32 positions) {
  return (positions + kDeltaChunk - 1) / kDeltaChunk;
}

}  // namespace heddle
