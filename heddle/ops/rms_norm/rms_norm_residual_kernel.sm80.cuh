// The norm of sums of rows, in registers.
#pragma once

#include "heddle/kit/norm_kernel.cuh"
#include "heddle/ops/rms_norm/rms_norm_residual.h"

namespace heddle::device::rms_norm_residual {

struct KernelConfig : NormConfig {};

template <class Config>
using Kernel = NormKernel<Config, RmsNormResidual, false>;

}  // namespace heddle::device::rms_norm_residual
