// Two CTAs of a cluster that have the two halves of each sum give each other half of them, and add.
#pragma once

#include "heddle/backend/cuda/arch/cluster.cuh"
#include "heddle/backend/cuda/arch/mbarrier.cuh"
#include "heddle/backend/cuda/arch/sm90.cuh"

namespace heddle::device {

// One group of four warps of each CTA, with kSums sums a thread. CTA r of the cluster gets the sums from r kSums / 2 on.
template <i32 kSums>
class Exchange {
 public:
  static constexpr i32 kOwn = kSums / 2;
  static constexpr u32 kBytes = 128 * kOwn * 4, kBarrierBytes = 16;
  static_assert(kOwn % 4 == 0);

  // `memory` and `barriers` lie at the same places in both CTAs.
  Exchange(arch::OnChip memory, arch::OnChip barriers)
      : memory_(memory), arrived_(barriers), free_(barriers + 8) {}

  // One thread calls it, before a barrier of the cluster.
  static void init(arch::OnChip barriers) {
    arch::init_barrier(barriers, 1u);
    arch::init_barrier(barriers + 8, 1u);
    arch::fence_barriers();
  }

  // Adds to the sums from kRank kSums / 2 on what the other CTA has of them; kRank is this CTA's. All 128 threads call it with a
  // named barrier of their own. Adding two values has one order.
  template <i32 kRank>
  void add(float (&sums)[kSums], u32 barrier) {
    constexpr i32 kMine = kRank * kOwn, kSent = kOwn - kMine;
    constexpr u32 kPeer = 1 - kRank;
    const u32 member = threadIdx.x % 128;
    arch::wait_barrier(free_, phase_ ^ 1);  // the other CTA has read what came before
    if (member == 0) arch::expect_bytes(arrived_, kBytes);
    const arch::OnChip there = arch::at_cta(memory_ + member * 16, kPeer),
                       count = arch::at_cta(arrived_, kPeer);
#pragma unroll
    for (i32 i = 0; i < kOwn; i += 4)
      arch::store_counted(there + i / 4 * 2048, reinterpret_cast<const float(&)[4]>(sums[kSent + i]), count);
    arch::wait_barrier(arrived_, phase_);
#pragma unroll
    for (i32 i = 0; i < kOwn; i += 4) {
      const uint4 bits = arch::load_word(memory_ + (i / 4 * 2048 + member * 16));
      float* const own = sums + (kMine + i);
      own[0] += __uint_as_float(bits.x), own[1] += __uint_as_float(bits.y);
      own[2] += __uint_as_float(bits.z), own[3] += __uint_as_float(bits.w);
    }
    asm volatile("bar.sync %0, 128;" ::"r"(barrier) : "memory");
    if (member == 0) arch::arrive_at(free_, kPeer);
    phase_ ^= 1;
  }

 private:
  const arch::OnChip memory_, arrived_, free_;
  u32 phase_ = 0;
};

}  // namespace heddle::device
