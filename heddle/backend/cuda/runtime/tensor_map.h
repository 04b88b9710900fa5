// Tensor maps: how bulk copies see a tensor in memory. A kernel takes them as parameters.
#pragma once

#include "heddle/backend/cuda/runtime/driver.h"
#include "heddle/ir/kernel.h"
#include "heddle/kit/arch/tensor_map.h"

namespace heddle::cuda {

// Makes the map of a tensor whose element 0 lies at `address`. Throws Error(kInternal), with what it would have to be, for a map
// that no device takes.
TensorMap make_tensor_map(const KernelMap& map, u64 address);

}  // namespace heddle::cuda
