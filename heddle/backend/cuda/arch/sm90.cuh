// Primitives of sm_90 and later: bulk copies that complete on barriers in shared memory.
#pragma once

#include "heddle/backend/cuda/arch/common.cuh"

namespace heddle::device::arch {

// The loader is one thread: a bulk copy needs no more.
constexpr u32 kLoaderThreads = 1;

inline void fence_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Copies `bytes` (a multiple of 16) into a ring slot; `full` completes when they are there. The weights are read
// once a step: evict first.
inline void copy_to_slot(OnChip to, const u8* from, u32 bytes, OnChip full) {
  constexpr u64 kEvictFirst = 0x12F0000000000000ull;
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(full.at), "r"(bytes) : "memory");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, "
      "[%3], %4;" ::"r"(to.at),
      "l"(from), "r"(bytes), "r"(full.at), "l"(kEvictFirst)
      : "memory");
}

// True when the phase with this parity is over; waits some time for it.
inline bool barrier_passed(OnChip barrier, u32 parity) {
  u32 done;
  asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
               : "=r"(done)
               : "r"(barrier.at), "r"(parity)
               : "memory");
  return done != 0;
}
inline bool barrier_passed(u64* barrier, u32 parity) {
  return barrier_passed(on_chip(barrier), parity);
}

// True if the phase with this parity is over; does not wait.
inline bool barrier_is_past(OnChip barrier, u32 parity) {
  u32 done;
  asm volatile("{\n.reg .pred p;\nmbarrier.test_wait.parity.shared.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
               : "=r"(done)
               : "r"(barrier.at), "r"(parity)
               : "memory");
  return done != 0;
}

// Warps of a CTA can hand over registers, four neighbouring warps at a time, on some architectures.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || defined(__CUDA_ARCH_FEAT_SM100_ALL)
constexpr bool kMovesRegisters = true;
template <u32 kCount>
inline void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}
template <u32 kCount>
inline void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}
#else
constexpr bool kMovesRegisters = false;
template <u32 kCount>
inline void take_registers() {}
template <u32 kCount>
inline void give_registers() {}
#endif

// Programmatic dependent launch.
inline void wait_for_kernel_before() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}
inline void let_next_kernel_start() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

}  // namespace heddle::device::arch
