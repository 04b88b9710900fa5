// All that whole kernels for sm_90a may use: that of kernel_sm80.cuh, clusters, bulk copies, barriers that count, products of four
// warps, and the parts made of them. The frame of a kernel of one's own has it.
#pragma once

#include "heddle/kit/arch/bulk.cuh"
#include "heddle/kit/arch/cluster.cuh"
#include "heddle/kit/arch/matrices.cuh"
#include "heddle/kit/arch/mbarrier.cuh"
#include "heddle/kit/arch/pairs.cuh"
#include "heddle/kit/attention/products.cuh"
#include "heddle/kit/attention/running_softmax.cuh"
#include "heddle/kit/attention/scores.cuh"
#include "heddle/kit/kernel_sm80.cuh"
#include "heddle/kit/move/chip.cuh"
#include "heddle/kit/move/exchange.cuh"
#include "heddle/kit/move/roles.cuh"
#include "heddle/kit/move/slot_ring.cuh"
#include "heddle/kit/move/store_tile.cuh"
#include "heddle/kit/move/turns.cuh"
