// Loads and stores of memory with an order or a hint, and copies from there to shared memory that complete in groups (cp.async).
#pragma once

#include "heddle/base/types.h"
#include "heddle/kit/arch/on_chip.cuh"

namespace heddle::device::arch {

inline void store_release(u32* address, u32 value) {
  asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}
inline u32 load_acquire(const u32* address) {
  u32 value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
  return value;
}
inline u32 load_relaxed(const u32* address) {
  u32 value;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
  return value;
}
inline void add_release(u32* address, u32 amount) {
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(address), "r"(amount) : "memory");
}

// Loads 16 bytes that nobody writes while the kernel runs.
inline uint4 load_constant(const void* address) {
  uint4 value;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(address));
  return value;
}
// Stores 16 bytes that nobody reads soon.
inline void store_once(void* to, uint4 bits) {
  asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(bits.x), "r"(bits.y), "r"(bits.z),
               "r"(bits.w)
               : "memory");
}

// Copies 16 bytes to shared memory asynchronously, or fills them with zeros.
inline void copy_word(void* to, const void* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(on_chip(to).at), "l"(from),
               "r"(there ? 16 : 0)
               : "memory");
}
// Copies the first `bytes` of 16, at most all, and fills the others with zeros.
inline void copy_bytes(void* to, const void* from, i32 bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(on_chip(to).at), "l"(from), "r"(bytes)
               : "memory");
}
// Copies 16 bytes by way of the L1 cache, for which the other half of their sector of 32 bytes is then no second read.
inline void copy_half_sector(void* to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(on_chip(to).at), "l"(from) : "memory");
}
inline void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// Waits until at most `left` of the committed groups are under way.
inline void wait_copies(i32 left) {
  if (left <= 0)
    asm volatile("cp.async.wait_group 0;" ::: "memory");
  else if (left == 1)
    asm volatile("cp.async.wait_group 1;" ::: "memory");
  else if (left == 2)
    asm volatile("cp.async.wait_group 2;" ::: "memory");
  else
    asm volatile("cp.async.wait_group 3;" ::: "memory");
}

}  // namespace heddle::device::arch
