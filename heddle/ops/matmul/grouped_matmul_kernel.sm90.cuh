// grouped_matmul as a whole kernel on sm_90a: that of matmul, which finds groups on the device.
#pragma once

#include "heddle/kit/kernel.cuh"
#include "heddle/ops/matmul/grouped_matmul.h"
#include "heddle/ops/matmul/matmul_kernel.sm90.cuh"

namespace heddle::device::grouped_matmul {
using matmul::KernelConfig;
template <class Config>
using Kernel = matmul::Kernel<Config>;
}  // namespace heddle::device::grouped_matmul
