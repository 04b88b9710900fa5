// The file of a whole kernel for sm_90a (x_kernel.sm90.cuh) may use this: all of kernel_sm80.cuh, clusters, bulk copies, barriers
// that count, products of four warps, and the parts made of them.
#pragma once

#include "heddle/backend/cuda/arch/bulk.cuh"
#include "heddle/backend/cuda/arch/cluster.cuh"
#include "heddle/backend/cuda/arch/matrices.cuh"
#include "heddle/backend/cuda/arch/mbarrier.cuh"
#include "heddle/backend/cuda/arch/pairs.cuh"
#include "heddle/backend/cuda/arch/wgmma_products.cuh"
#include "heddle/backend/cuda/device/attention_products.cuh"
#include "heddle/backend/cuda/device/chip.cuh"
#include "heddle/backend/cuda/device/exchange.cuh"
#include "heddle/backend/cuda/device/kernel_sm80.cuh"
#include "heddle/backend/cuda/device/roles.cuh"
#include "heddle/backend/cuda/device/running_softmax.cuh"
#include "heddle/backend/cuda/device/slot_ring.cuh"
#include "heddle/backend/cuda/device/store_tile.cuh"
#include "heddle/backend/cuda/device/turns.cuh"
