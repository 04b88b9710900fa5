// The file of a whole kernel for sm_90a (x_kernel.sm90.cuh) may use this: all of kernel_sm80.cuh, clusters, bulk copies, barriers
// that count, products of four warps, and the parts made of them.
#pragma once

#include "heddle/backend/cuda/arch/bulk.cuh"
#include "heddle/backend/cuda/arch/cluster.cuh"
#include "heddle/backend/cuda/arch/matrices.cuh"
#include "heddle/backend/cuda/arch/mbarrier.cuh"
#include "heddle/backend/cuda/arch/pairs.cuh"
#include "heddle/backend/cuda/arch/wgmma_products.cuh"
#include "heddle/backend/cuda/device/exchange.cuh"
#include "heddle/backend/cuda/device/kernel_sm80.cuh"
#include "heddle/backend/cuda/device/next_tile.cuh"
#include "heddle/backend/cuda/device/roles.cuh"
#include "heddle/backend/cuda/device/slot_ring.cuh"
#include "heddle/backend/cuda/device/store_tile.cuh"
#include "heddle/backend/cuda/device/turns.cuh"

namespace heddle::device {

// The dynamic shared memory of the launch, from a multiple of 1,024 bytes on. A whole kernel has no other.
inline arch::OnChip chip() {
  extern __shared__ __align__(1024) u8 whole_kernel_chip[];
  return arch::on_chip(whole_kernel_chip);
}

}  // namespace heddle::device
