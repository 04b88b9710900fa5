// A call of a program as a whole kernel: main op and epilogues, without instructions (ir/kernel.h, OpSpec::chain_kernel). The file
// of such a kernel (x_kernel.sm90.cuh) is included once, inside this namespace, after the bodies of the chain. It has
//   struct KernelConfig           defaults of the constants that the op's plan names
//   template <class Config, class Chain>   Config: those constants, and `types()`: the main op's arguments with the dtypes of the call
//   struct ChainKernel {
//     static constexpr u32 kThreads;   of a CTA
//     static void run(const KernelParams& p, const CallParams& call, const TensorMap* maps);
//   }
// It starts and waits as a kernel of tiles does (launch.cuh), and leaves the same counts of tiles.
#pragma once

#include "heddle/backend/cuda/device/cta.cuh"
#include "heddle/kit/arch/bulk.cuh"
#include "heddle/kit/arch/matrices.cuh"
#include "heddle/kit/arch/mbarrier.cuh"
#include "heddle/kit/arch/tensor_map.h"
#include "heddle/kit/arch/wgmma_products.cuh"
#include "heddle/kit/move/chip.cuh"
#include "heddle/kit/move/next_tile.cuh"
#include "heddle/kit/move/roles.cuh"
#include "heddle/kit/move/slot_ring.cuh"
#include "heddle/kit/move/store_tile.cuh"
#include "heddle/kit/move/turns.cuh"

namespace heddle::device {

// The part of a block that epilogues ask when they take columns in registers.
struct RowsBlock {
  static View row(const Tensor& tensor, auto... indices) {
    i64 at = 0;
    int d = 0;
    ((at += i64(indices) * tensor.stride[d++]), ...);
    return {tensor.data + at * size_of(tensor.dtype), tensor.dtype};
  }
  static const StepHost& host(const Tensor& tensor) {
    return *reinterpret_cast<const StepHost*>(tensor.data);
  }
  static const StepDevice& device(const Tensor& tensor) {
    return *reinterpret_cast<const StepDevice*>(tensor.data);
  }
};

// The rows of a call that are live.
inline i32 live_rows(const KernelParams& p, LiveRows live, i32 rows) {
  if (live == LiveRows::kAll) return rows;
  return min(rows, live == LiveRows::kRows ? p.host->rows : p.host->wanted);
}

// Counts the program's tiles of a call as run or dead. One warp calls it.
inline void count_tiles(const KernelParams& p, const CallParams& call) {
  u32 count[2] = {};
  for (u32 i = threadIdx.x % 32; i < call.tiles; i += 32) {
    TileCoord tile = tile_of(p.instructions[call.first + i]);
    ++count[clamp_to_live(call.live, p.host, tile) ? 0 : 1];
  }
#pragma unroll
  for (i32 i = 0; i < 2; ++i)
    if (count[i] > 0) atomicAdd(&p.tiles[i], count[i]);
}

}  // namespace heddle::device
