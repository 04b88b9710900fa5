// The norm of sums of rows, in registers.
#pragma once

#include "heddle/kit/norm_kernel.cuh"
#include "heddle/ops/layer_norm/layer_norm_residual.h"

namespace heddle::device::layer_norm_residual {

struct KernelConfig : NormConfig {};

template <class Config>
using Kernel = NormKernel<Config, LayerNormResidual, true>;

}  // namespace heddle::device::layer_norm_residual
