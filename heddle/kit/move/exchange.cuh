// CTAs of a cluster that have parts of each sum give each other those of some sums, and add them in the order of the parts.
#pragma once

#include "heddle/kit/arch/cluster.cuh"
#include "heddle/kit/arch/mbarrier.cuh"
#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/arch/thread.cuh"

namespace heddle::device {

// One group of four warps of each of kParts CTAs, with kSums sums a thread. CTA r of the cluster gets the sums from
// r kSums / kParts on.
template <i32 kSums, i32 kParts>
class Exchange {
 public:
  static constexpr i32 kOwn = kSums / kParts;
  static constexpr u32 kPartBytes = 128 * kOwn * 4, kBytes = (kParts - 1) * kPartBytes, kBarrierBytes = 16;
  static_assert(kOwn % 4 == 0 && kOwn * kParts == kSums);

  // `memory` and `barriers` lie at the same places in all CTAs.
  Exchange(arch::OnChip memory, arch::OnChip barriers)
      : memory_(memory), arrived_(barriers), free_(barriers + 8) {}

  // One thread calls it, before a barrier of the cluster.
  static void init(arch::OnChip barriers) {
    arch::init_barrier(barriers, 1u);
    arch::init_barrier(barriers + 8, u32(kParts - 1));
    arch::fence_barriers();
  }

  // Adds the other CTAs' parts to the sums from kRank kOwn on; kRank is this CTA's. All 128 threads call it with a named barrier
  // of their own.
  template <i32 kRank>
  void add(float (&sums)[kSums], u32 barrier) {
    const u32 member = threadIdx.x % 128;
    arch::wait_barrier(free_, phase_ ^ 1);  // the other CTAs have read what came before
    if (member == 0) arch::expect_bytes(arrived_, kBytes);
#pragma unroll
    for (i32 i = 1; i < kParts; ++i) send<kRank>(sums, (kRank + i) % kParts, member);
    arch::wait_barrier(arrived_, phase_);
    float* const own = sums + kRank * kOwn;
#pragma unroll
    for (i32 i = 0; i < kOwn; i += 4) add_word<kRank>(own + i, i / 4, member);
    arch::sync_threads<128>(barrier);
    if (member == 0)
#pragma unroll
      for (i32 i = 1; i < kParts; ++i) arch::arrive_at(free_, u32((kRank + i) % kParts));
    phase_ ^= 1;
  }

 private:
  // Where CTA `to` keeps what CTA `from` sends: the next CTA's words come first.
  static constexpr u32 place_of(i32 from, i32 to) {
    return u32((from - to + kParts) % kParts - 1) * kPartBytes;
  }

  template <i32 kRank>
  void send(const float (&sums)[kSums], i32 to, u32 member) const {
    const arch::OnChip there = arch::at_cta(memory_ + (place_of(kRank, to) + member * 16), u32(to)),
                       count = arch::at_cta(arrived_, u32(to));
#pragma unroll
    for (i32 i = 0; i < kOwn; i += 4)
      arch::store_counted(there + i / 4 * 2048, reinterpret_cast<const float(&)[4]>(sums[to * kOwn + i]),
                          count);
  }

  // Adds four sums in the order of the parts.
  template <i32 kRank>
  void add_word(float* own, i32 word, u32 member) const {
    float total[4];
#pragma unroll
    for (i32 from = 0; from < kParts; ++from) {
      float part[4] = {own[0], own[1], own[2], own[3]};
      if (from != kRank) {
        const uint4 bits = arch::load_word(memory_ + (place_of(from, kRank) + word * 2048 + member * 16));
        part[0] = __uint_as_float(bits.x), part[1] = __uint_as_float(bits.y);
        part[2] = __uint_as_float(bits.z), part[3] = __uint_as_float(bits.w);
      }
#pragma unroll
      for (i32 j = 0; j < 4; ++j) total[j] = from == 0 ? part[j] : total[j] + part[j];
    }
#pragma unroll
    for (i32 j = 0; j < 4; ++j) own[j] = total[j];
  }

  const arch::OnChip memory_, arrived_, free_;
  u32 phase_ = 0;
};

}  // namespace heddle::device
