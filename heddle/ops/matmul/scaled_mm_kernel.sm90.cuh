// scaled_mm as a whole kernel on sm_90a: that of matmul, for products of fp8 with scales.
#pragma once

#include "heddle/kit/kernel.cuh"
#include "heddle/ops/matmul/matmul_kernel.sm90.cuh"
#include "heddle/ops/matmul/scaled_mm.h"

namespace heddle::device::scaled_mm {
using matmul::KernelConfig;
template <class Config>
using Kernel = matmul::Kernel<Config>;
template <class Config>
using CopyKernel = matmul::CopyKernel<Config>;
}  // namespace heddle::device::scaled_mm
