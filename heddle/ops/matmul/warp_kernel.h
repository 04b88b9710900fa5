// Plans a product of fp8 with scales as a whole kernel of mma.sync (scaled_mm_kernel.sm80.cuh), which takes
// what the kernel with wgmma does not.
#pragma once

#include <vector>

#include "heddle/ops/matmul/product_kernel.h"

namespace heddle {

// Configurations, the likely best first; all give the same bits.
std::vector<OpConfig> warp_kernel_configs(const ProductCall& call, const KernelTarget& target);
bool is_of_warp_kernel(const OpConfig& config);
KernelPlan warp_kernel(const ProductCall& call, const KernelTarget& target, const OpConfig& config);

}  // namespace heddle
