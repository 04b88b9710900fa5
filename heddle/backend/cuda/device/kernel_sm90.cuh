// The file of a whole kernel for sm_90a (x_kernel.sm90.cuh) may use this: all of kernel_sm80.cuh, clusters, bulk copies, barriers
// that count, products of four warps, and the parts made of them.
#pragma once

#include "heddle/backend/cuda/device/kernel_sm80.cuh"
#include "heddle/kit/arch/bulk.cuh"
#include "heddle/kit/arch/cluster.cuh"
#include "heddle/kit/arch/matrices.cuh"
#include "heddle/kit/arch/mbarrier.cuh"
#include "heddle/kit/arch/pairs.cuh"
#include "heddle/kit/arch/wgmma_products.cuh"
#include "heddle/kit/attention/products.cuh"
#include "heddle/kit/attention/running_softmax.cuh"
#include "heddle/kit/move/chip.cuh"
#include "heddle/kit/move/exchange.cuh"
#include "heddle/kit/move/roles.cuh"
#include "heddle/kit/move/slot_ring.cuh"
#include "heddle/kit/move/store_tile.cuh"
#include "heddle/kit/move/turns.cuh"
