// A device's memory for programs and weights, and copies to, from and in it that run while the host works.
#pragma once

#include "heddle/backend/cuda/runtime/device.h"
#include "heddle/ir/executor/memory_space.h"

namespace heddle::cuda {

// Returns the memory of programs on a device. Each device has one space, in its primary context.
MemorySpace& device_space(const Device& device);

}  // namespace heddle::cuda
