// Barriers in shared memory that count arrivals and bytes, on sm_90 and later. A wait that lasts too long ends the kernel with a
// trap, because a kernel that hangs takes the whole device.
#pragma once

#include "heddle/kit/arch/on_chip.cuh"

namespace heddle::device::arch {

inline void init_barrier(OnChip barrier, u32 arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier.at), "r"(arrivals) : "memory");
}
// Arrives, and has the phase wait for so many bytes of copies too.
inline void expect_bytes(OnChip barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier.at), "r"(bytes) : "memory");
}
// Arrives at the barrier that CTA `cta` of the cluster has at this place. No scope is named, because `.release.cluster` waits for
// all copies of the multiprocessor that are under way. So others must read nothing that this thread has written before.
inline void arrive_at(OnChip barrier, u32 cta) {
  asm volatile(
      "{.reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; mbarrier.arrive.shared::cluster.b64 _, "
      "[there];}" ::"r"(barrier.at),
      "r"(cta)
      : "memory");
}

constexpr u64 kMostWaitTicks = 1ull << 32;  // two or three seconds

// One block of assembly: with a trap of its own in the program, ptxas (13.0) keeps all roles to the registers of the launch, and
// kernels that take more of them spill.
inline void wait_barrier(OnChip barrier, u32 parity) {
  asm volatile(
      "{.reg .pred p; .reg .u64 begin, now;\n"
      "mbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n@p bra done_%=;\n"
      "mov.u64 begin, %%clock64;\n"
      "again_%=:\nmbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n@p bra done_%=;\n"
      "mov.u64 now, %%clock64; sub.u64 now, now, begin; setp.gt.u64 p, now, %2;\n@!p bra again_%=;\ntrap;\n"
      "done_%=:\n}" ::"r"(barrier.at),
      "r"(parity), "n"(kMostWaitTicks)
      : "memory");
}

// Waits for another CTA to store `value` there with release.
inline void wait_acquire(const u32* address, u32 value) {
  asm volatile(
      "{.reg .pred p; .reg .u32 seen; .reg .u64 begin, now;\n"
      "mov.u64 begin, %%clock64;\n"
      "again_%=:\nld.acquire.gpu.u32 seen, [%0];\nsetp.eq.u32 p, seen, %1;\n@p bra done_%=;\n"
      "mov.u64 now, %%clock64; sub.u64 now, now, begin; setp.gt.u64 p, now, %2;\n@!p bra again_%=;\ntrap;\n"
      "done_%=:\n}" ::"l"(address),
      "r"(value), "n"(kMostWaitTicks)
      : "memory");
}

}  // namespace heddle::device::arch
