// Measures how fast a GPU reads its memory: the ceiling of decoding one token at a time.
#pragma once

#include "heddle/backend/cuda/runtime/device.h"

namespace heddle::cuda {

// Bytes a second at which a plain kernel reads memory that no cache holds; the best of a few rounds. Throws
// Error(kDevice), Error(kUnsupported) where there is no compiler.
double measure_read_bandwidth(const Device& device);

}  // namespace heddle::cuda
