// Shared memory by address, flags and barriers in it, and copies that complete on such barriers.
#pragma once

#include "heddle/base/types.h"

namespace heddle::device::arch {

// The dynamic shared memory of the launch, which does not include the kernel's own __shared__ variables.
inline u8* dynamic_shared() {
  extern __shared__ __align__(128) u8 bytes[];
  return bytes;
}

// An address in shared memory, in a register. The compiler would compute a generic pointer anew at each use.
struct OnChip {
  u32 at;
  friend OnChip operator+(OnChip a, u32 bytes) { return {a.at + bytes}; }
};
inline OnChip on_chip(const void* address) {
  return {u32(__cvta_generic_to_shared(address))};
}
inline void forget(OnChip& address) {
  asm volatile("" : "+r"(address.at));
}
// Loads 16 bytes in program order.
inline uint4 load_word(OnChip from) {
  uint4 bits;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(bits.x), "=r"(bits.y), "=r"(bits.z), "=r"(bits.w)
               : "r"(from.at));
  return bits;
}

inline void init_barrier(u64* barrier, u32 arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(on_chip(barrier).at), "r"(arrivals));
}
inline void arrive(OnChip barrier) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(barrier.at) : "memory");
}
inline void arrive(u64* barrier) {
  arrive(on_chip(barrier));
}

// Read and write a flag on chip without a barrier between. They are atomics, because racecheck reports anything else as a hazard.
inline u32 look_at(const volatile u32& flag) {
  u32 value;
  asm volatile("atom.shared.or.b32 %0, [%1], 0;"
               : "=r"(value)
               : "r"(on_chip(const_cast<const u32*>(&flag)).at)
               : "memory");
  return value;
}
inline void show(volatile u32& flag, u32 value) {
  asm volatile(
      "{.reg .u32 was; atom.shared.exch.b32 was, [%0], %1;}" ::"r"(on_chip(const_cast<u32*>(&flag)).at),
      "r"(value)
      : "memory");
}

#if __CUDA_ARCH__ >= 900
// The loader of a ring is one thread: a bulk copy needs no more.
constexpr u32 kLoaderThreads = 1;

inline void fence_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Copies `bytes` (a multiple of 16) into a ring slot. All loader threads call it; `full` expects an arrival of each and completes
// when the bytes are there. The weights are read once a step: evict first.
inline void copy_to_slot(OnChip to, const u8* from, u32 bytes, OnChip full) {
  constexpr u64 kEvictFirst = 0x12F0000000000000ull;
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(full.at), "r"(bytes) : "memory");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, "
      "[%3], %4;" ::"r"(to.at),
      "l"(from), "r"(bytes), "r"(full.at), "l"(kEvictFirst)
      : "memory");
}
#else
constexpr u32 kLoaderThreads = 32;

inline void fence_barriers() {}

inline void copy_to_slot(OnChip to, const u8* from, u32 bytes, OnChip full) {
  for (u32 at = threadIdx.x % 32 * 16; at < bytes; at += 32 * 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((to + at).at), "l"(from + at) : "memory");
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(full.at) : "memory");
}
#endif

// True if the phase with this parity is over; does not wait.
inline bool barrier_is_past(OnChip barrier, u32 parity) {
  u32 done;
  asm volatile("{\n.reg .pred p;\nmbarrier.test_wait.parity.shared.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
               : "=r"(done)
               : "r"(barrier.at), "r"(parity)
               : "memory");
  return done != 0;
}
// From sm_90 on this waits some time for the end.
inline bool barrier_passed(OnChip barrier, u32 parity) {
#if __CUDA_ARCH__ >= 900
  u32 done;
  asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
               : "=r"(done)
               : "r"(barrier.at), "r"(parity)
               : "memory");
  return done != 0;
#else
  return barrier_is_past(barrier, parity);
#endif
}
inline bool barrier_passed(u64* barrier, u32 parity) {
  return barrier_passed(on_chip(barrier), parity);
}

// Words of shared memory. Two neighbours lie at a multiple of 8 bytes, four at one of 16.
inline void store_shared(OnChip at, u32 word) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(at.at), "r"(word) : "memory");
}
inline void store_shared(OnChip at, float value) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(at.at), "f"(value) : "memory");
}
inline void store_shared(OnChip at, float first, float second) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(at.at), "f"(first), "f"(second) : "memory");
}
inline void store_shared(OnChip at, const uint4& words) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(at.at), "r"(words.x), "r"(words.y),
               "r"(words.z), "r"(words.w)
               : "memory");
}
inline void store_shared(OnChip at, const float4& values) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(at.at), "f"(values.x), "f"(values.y),
               "f"(values.z), "f"(values.w)
               : "memory");
}

inline u32 load_shared(OnChip at) {
  u32 word;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(word) : "r"(at.at) : "memory");
  return word;
}
inline float2 load_shared_pair(OnChip at) {
  float2 pair;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(pair.x), "=f"(pair.y) : "r"(at.at) : "memory");
  return pair;
}
inline void load_shared_pair(OnChip at, float (&to)[2]) {
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(to[0]), "=f"(to[1]) : "r"(at.at) : "memory");
}

}  // namespace heddle::device::arch
