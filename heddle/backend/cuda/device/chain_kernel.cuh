// A call of a program as a whole kernel: main op and epilogues, without instructions (ir/kernel.h, OpSpec::chain_kernel). The file
// of such a kernel (x_kernel.sm90.cuh) has in heddle::device::x
//   struct KernelConfig           defaults of the constants that the op's plan names
//   template <class Config, class Frame>   Config: those constants, and `types()`: the main op's arguments with the dtypes of the call
//   struct ChainKernel {
//     static constexpr u32 kThreads;   of a CTA
//     static void run(const Frame& frame, const TensorMap* maps);   Frame: CallFrame
//   }
// It starts and waits as a kernel of tiles does (launch.cuh), and leaves the same counts of tiles.
#pragma once

#include "heddle/backend/cuda/device/cta.cuh"
#include "heddle/kit/arch/tensor_map.h"

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

// Gives such a kernel its arguments and epilogues, the live rows, and the counts of tiles.
template <class C>
struct CallFrame {
  using Chain = C;
  using Block = RowsBlock;
  using Columns = device::Columns;

  const KernelParams& p;
  const CallParams& call;

  Chain chain() const { return {p.args + call.args}; }
  // The rows that are live, of `rows`.
  i32 live(i32 rows) const {
    if (call.live == LiveRows::kAll) return rows;
    return min(rows, call.live == LiveRows::kRows ? p.host->rows : p.host->wanted);
  }
  // Counts the program's tiles of a call as run or dead. One warp calls it.
  template <class IsDead>
  void count_tiles(const IsDead& is_dead) const {
    u32 count[2] = {};
    for (u32 i = threadIdx.x % 32; i < call.tiles; i += 32)
      ++count[is_dead(tile_of(p.instructions[call.first + i]))];
#pragma unroll
    for (i32 i = 0; i < 2; ++i)
      if (count[i] > 0) atomicAdd(&p.tiles[i], count[i]);
  }
  void count_tiles() const {
    count_tiles([&](TileCoord tile) { return clamp_to_live(call.live, p.host, tile) ? 0 : 1; });
  }
};

}  // namespace heddle::device
