// bmm as a whole kernel on sm_90a: that of matmul, for products of pairs of matrices.
#include "heddle/ops/matmul/matmul_kernel.sm90.cuh"

namespace bmm {
using matmul::KernelConfig;
template <class Config>
using Kernel = matmul::Kernel<Config>;
}  // namespace bmm
