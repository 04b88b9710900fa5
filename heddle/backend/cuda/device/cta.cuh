// What the warps of a CTA are and where its memory lies: consumer warps first, then the loader.
#pragma once

#include "heddle/backend/cuda/device/chain.cuh"
#include "heddle/tile/block_concept.h"

namespace heddle::device {

inline TileCoord tile_of(const Instruction& instruction) {
  return {{instruction.tile[0], instruction.tile[1], instruction.tile[2], instruction.tile[3]}};
}

// Clamps a tile to the rows that are live; false: none is.
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
  // The warp after the consumers; `loads` is false for its threads that have nothing to do.
  bool is_loader() const { return arch::thread() >= kConsumers; }
  bool loads() const { return arch::thread() < kConsumers + arch::kLoaderThreads; }

  RingCursor cursor() const {
    return {arch::on_chip(memory() + kScratchBytes), arch::on_chip(&barriers()), p_.ring_slots};
  }
  // All on-chip memory as scratch, of a tile that draws nothing through the ring.
  Scratch all_scratch() const { return {i32(kScratchBytes + p_.ring_slots * kRingSlotBytes), p_.spill}; }
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
