// Primitives of sm_80 to sm_89: copies by the threads of a warp that complete on barriers in shared memory.
#pragma once

#include "heddle/backend/cuda/arch/common.cuh"

namespace heddle::device::arch {

constexpr u32 kLoaderThreads = 32;

inline void fence_barriers() {}

// Copies `bytes` (a multiple of 16) into a ring slot. All loader threads call it; `full` expects an arrival of each and completes
// when the bytes are there.
inline void copy_to_slot(OnChip to, const u8* from, u32 bytes, OnChip full) {
  for (u32 at = threadIdx.x % 32 * 16; at < bytes; at += 32 * 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((to + at).at), "l"(from + at) : "memory");
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(full.at) : "memory");
}

inline bool barrier_passed(OnChip barrier, u32 parity) {
  u32 done;
  asm volatile("{\n.reg .pred p;\nmbarrier.test_wait.parity.shared.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
               : "=r"(done)
               : "r"(barrier.at), "r"(parity)
               : "memory");
  return done != 0;
}
inline bool barrier_passed(u64* barrier, u32 parity) {
  return barrier_passed(on_chip(barrier), parity);
}

inline bool barrier_is_past(OnChip barrier, u32 parity) {
  return barrier_passed(barrier, parity);
}

// Warps cannot hand over registers.
constexpr bool kMovesRegisters = false;
template <u32 kCount>
inline void take_registers() {}
template <u32 kCount>
inline void give_registers() {}

// No programmatic dependent launch: kernels follow one another whole.
inline void wait_for_kernel_before() {}
inline void let_next_kernel_start() {}

}  // namespace heddle::device::arch
