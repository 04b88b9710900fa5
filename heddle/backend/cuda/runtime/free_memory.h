// Asks NVIDIA's management library how much memory of a GPU is free: the driver itself tells only a process
// that has a context there, and making one takes about 0.2 s and some hundred MB on each GPU.
#pragma once

#include <optional>

#include "heddle/backend/cuda/runtime/device.h"

namespace heddle::cuda {

// Bytes at this moment; none where the library is not here or does not know the device.
std::optional<i64> free_memory(const Device& device);

}  // namespace heddle::cuda
