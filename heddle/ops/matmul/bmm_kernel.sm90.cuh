// bmm as a whole kernel on sm_90a: that of matmul, for products of pairs of matrices.
#pragma once

#include "heddle/kit/kernel.cuh"
#include "heddle/ops/matmul/bmm.h"
#include "heddle/ops/matmul/matmul_kernel.sm90.cuh"

namespace heddle::device::bmm {
using matmul::KernelConfig;
template <class Config>
using Kernel = matmul::Kernel<Config>;
template <class Config>
using CopyKernel = matmul::CopyKernel<Config>;
}  // namespace heddle::device::bmm
