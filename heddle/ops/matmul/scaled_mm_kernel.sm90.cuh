// scaled_mm as a whole kernel on sm_90a: that of matmul, for products of fp8 with scales.
#include "heddle/ops/matmul/matmul_kernel.sm90.cuh"

namespace scaled_mm {
using matmul::KernelConfig;
template <class Config>
using Kernel = matmul::Kernel<Config>;
}  // namespace scaled_mm
