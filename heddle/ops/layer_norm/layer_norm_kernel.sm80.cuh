// The norm of rows, in registers.
#pragma once

#include "heddle/kit/norm_kernel.cuh"
#include "heddle/ops/layer_norm/layer_norm.h"

namespace heddle::device::layer_norm {

struct KernelConfig : NormConfig {};

template <class Config>
using Kernel = NormKernel<Config, LayerNorm, true>;

}  // namespace heddle::device::layer_norm
