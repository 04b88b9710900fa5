// What a kernel of one op is given beside the op's arguments, which come by value. Read by host and device: no standard
// headers.
#pragma once

#include "heddle/backend/cuda/device/params.h"

namespace heddle {

constexpr int kMostAxes = 4;

// One axis of a call's tiling: `tiles` tiles of `step` elements, the last one to `extent`.
struct GridAxis {
  i32 extent = 1, step = 1;
  u32 tiles = 1;
};

// The tiles of a call, one for each CTA: the last axis counts fastest.
struct OpGrid {
  GridAxis axes[kMostAxes];
  i32 chip_bytes = 0;  // dynamic shared memory
  SpillRoom spill;
};

constexpr int kMostParamBytes = 4096;  // of a kernel's parameters

}  // namespace heddle
