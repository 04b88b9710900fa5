// The roles of a CTA's warps and the layout of its shared memory. The first kWarps warps are consumers: they are the block that
// runs bodies. The next warp is the loader: it walks the instructions before the consumers do and fills the ring with
// the panels that bodies name in `stream`. In a megakernel a controller warp fetches the instructions. Dynamic
// shared memory holds kScratchBytes of scratch, then the ring's slots.
#pragma once

#include "heddle/backend/cuda/device/chain.cuh"
#include "heddle/backend/cuda/device/ring_wait.cuh"
#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/arch/thread.cuh"
#include "heddle/tile/block_concept.h"

namespace heddle::device {

inline TileCoord tile_of(const Instruction& instruction) {
  return {{instruction.tile[0], instruction.tile[1], instruction.tile[2], instruction.tile[3]}};
}

// Clamps a tile to the live rows. False: none of its rows is live.
inline bool clamp_to_live(LiveRows live, const StepHost* host, TileCoord& tile) {
  if (live == LiveRows::kAll) return true;
  const i32 rows = live == LiveRows::kRows ? host->rows : host->wanted;
  if (tile[0] >= rows) return false;
  if (tile[1] > rows) tile[1] = rows;
  return true;
}

class Cta {
 public:
  explicit Cta(const KernelParams& p) : p_(p) {
    if (arch::thread() == 0) {
      for (u32 slot = 0; slot < p.ring_slots; ++slot) {
        arch::init_barrier(&barriers().full[slot], arch::kLoaderThreads);
        arch::init_barrier(&barriers().empty[slot], kEveryReaderArrives ? kConsumers : kWarps);
      }
      arch::fence_barriers();
      panel_limit() = p.panel_limit;
    }
    __syncthreads();
  }
  // The loader is the warp after the consumers. `loads` is false for its threads that have nothing to do.
  bool is_loader() const { return arch::thread() >= kConsumers; }
  bool loads() const { return arch::thread() < kConsumers + arch::kLoaderThreads; }

  RingCursor cursor() const {
    return {arch::on_chip(memory() + kScratchBytes), arch::on_chip(&barriers()), p_.ring_slots};
  }
  // All on-chip memory as scratch, for a tile that draws nothing through the ring.
  Scratch all_scratch() const { return {i32(kScratchBytes + p_.ring_slots * kSlotBytes), p_.spill}; }
  Scratch scratch() const { return {i32(kScratchBytes), p_.spill}; }

 private:
  static RingBarriers& barriers() {
    __shared__ RingBarriers all;
    return all;
  }
  static u8* memory() { return arch::dynamic_shared(); }

  const KernelParams& p_;
};

}  // namespace heddle::device
