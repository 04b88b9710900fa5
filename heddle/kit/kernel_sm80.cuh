// All that whole kernels for sm_80 and later may use: the frame of a kernel of one's own has it (docs/kernels.md).
#pragma once

#include "heddle/kit/arch/common.cuh"
#include "heddle/kit/kernel.cuh"
#include "heddle/kit/move/next_tile.cuh"
#include "heddle/kit/move/store_pair.cuh"
#include "heddle/kit/rows/cluster_part.cuh"
#include "heddle/kit/rows/elements.cuh"
#include "heddle/kit/rows/rows_ahead.cuh"
#include "heddle/kit/rows/softsum.cuh"
