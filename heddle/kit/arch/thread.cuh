// A thread, its barriers with others of its CTA, its clocks and its registers.
#pragma once

#include "heddle/base/types.h"

namespace heddle::device::arch {

// threadIdx.x, read where this is called. Otherwise the compiler computes values from it once for all bodies of a program and keeps
// them in registers, or in local memory, to the end.
inline u32 thread() {
  u32 index;
  asm volatile("mov.u32 %0, %tid.x;" : "=r"(index));
  return index;
}
// Hides a value's origin from the compiler, so that the value is computed here and not where it is used.
inline void forget(uint4& bits) {
  asm volatile("" : "+r"(bits.x), "+r"(bits.y), "+r"(bits.z), "+r"(bits.w));
}
// Ends the thread.
inline void exit_thread() {
  asm volatile("exit;");
}

// Barrier kNumber of the CTA, for kThreads threads.
template <u32 kNumber, u32 kThreads>
inline void sync_threads() {
  asm volatile("bar.sync %0, %1;" ::"n"(kNumber), "n"(kThreads) : "memory");
}
// Counts there without waiting.
template <u32 kNumber, u32 kThreads>
inline void arrive_threads() {
  asm volatile("bar.arrive %0, %1;" ::"n"(kNumber), "n"(kThreads) : "memory");
}
// Barrier `number` of the CTA, for kThreads threads.
template <u32 kThreads>
inline void sync_threads(u32 number) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "n"(kThreads) : "memory");
}
// Counts there without waiting.
template <u32 kThreads>
inline void arrive_threads(u32 number) {
  asm volatile("bar.arrive %0, %1;" ::"r"(number), "n"(kThreads) : "memory");
}

// The compiler moves no access of memory past this. It makes no instruction.
inline void hold_order() {
  asm volatile("" ::: "memory");
}
// Leaves a register with whatever it has, where a product that does not add will write it: zeros would cost instructions.
inline void leave_unset(float& value) {
  asm volatile("" : "=f"(value)::"memory");
}

// The multiprocessor that this CTA runs on. A CTA that fills the shared memory is alone there.
inline u32 multiprocessor() {
  u32 number;
  asm volatile("mov.u32 %0, %smid;" : "=r"(number));
  return number;
}

inline u64 nanoseconds() {
  u64 now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

// The clock of this multiprocessor.
inline u64 ticks() {
  u64 now;
  asm volatile("mov.u64 %0, %clock64;" : "=l"(now));
  return now;
}

// Sleeps between two looks at a word in shared memory, which leaves the issue slots to other warps.
inline void idle() {
  asm volatile("nanosleep.u32 20;");
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

// Programmatic dependent launch, from sm_90 on; before, kernels follow one another whole.
inline void wait_for_kernel_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
inline void let_next_kernel_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

}  // namespace heddle::device::arch
