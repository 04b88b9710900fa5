// The norm of rows, in registers.
#pragma once

#include "heddle/kit/norm_kernel.cuh"
#include "heddle/ops/rms_norm/rms_norm.h"

namespace heddle::device::rms_norm {

struct KernelConfig : NormConfig {};

template <class Config>
using Kernel = NormKernel<Config, RmsNorm, false>;

}  // namespace heddle::device::rms_norm
