// A ring of slots on chip between the threads that bring data and those that use it, with two barriers a slot (arch/mbarrier.cuh).
#pragma once

#include "heddle/kit/arch/mbarrier.cuh"
#include "heddle/kit/arch/on_chip.cuh"

namespace heddle::device {

// A place in a ring: a slot, and how often the ring has been gone around.
template <i32 kSlots>
struct SlotPlace {
  u32 slot = 0, phase = 0;

  void next() {
    if (++slot == u32(kSlots)) slot = 0, phase ^= 1;
  }
};

template <i32 kSlots, u32 kSlotBytes>
struct SlotRing {
  using Place = SlotPlace<kSlots>;
  static constexpr u32 kBytes = kSlots * kSlotBytes, kBarrierBytes = 2 * kSlots * 8;

  arch::OnChip slots, barriers;  // kBytes, kBarrierBytes

  arch::OnChip slot(const Place& place) const { return slots + place.slot * kSlotBytes; }
  arch::OnChip full(const Place& place) const { return barriers + place.slot * 8; }
  arch::OnChip empty(const Place& place) const { return barriers + (kSlots + place.slot) * 8; }

  // One thread calls it, before a barrier of all threads that use the ring, and of the cluster if others arrive here.
  // `readers`: arrivals that give a slot back.
  void init(u32 readers) const {
    for (i32 s = 0; s < kSlots; ++s) {
      arch::init_barrier(barriers + s * 8, 1u);
      arch::init_barrier(barriers + (kSlots + s) * 8, readers);
    }
    arch::fence_barriers();
  }
  // The bringing thread: waits until the slot is free, and announces the bytes that copies will count on full().
  void begin(const Place& place, u32 bytes = kSlotBytes) const {
    arch::wait_barrier(empty(place), place.phase ^ 1);
    arch::expect_bytes(full(place), bytes);
  }
  // The using threads: wait until the data are there, and give the slot back, here or to a CTA of the cluster.
  void wait(const Place& place) const { arch::wait_barrier(full(place), place.phase); }
  void release(const Place& place) const { arch::arrive(empty(place)); }
  void release_at(const Place& place, u32 cta) const { arch::arrive_at(empty(place), cta); }
};

}  // namespace heddle::device
