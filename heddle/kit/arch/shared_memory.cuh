// Words of shared memory by their address on chip, and barriers of some threads of a CTA whose number is known at run time.
#pragma once

#include "heddle/kit/arch/common.cuh"

namespace heddle::device::arch {

inline void store_shared(OnChip at, u32 word) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(at.at), "r"(word) : "memory");
}
inline void store_shared(OnChip at, float value) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(at.at), "f"(value) : "memory");
}
inline void store_shared(OnChip at, float first, float second) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(at.at), "f"(first), "f"(second) : "memory");
}
// 16 bytes, at a multiple of 16.
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
// Two neighbouring floats.
inline float2 load_shared_pair(OnChip at) {
  float2 pair;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(pair.x), "=f"(pair.y) : "r"(at.at) : "memory");
  return pair;
}
inline void load_shared_pair(OnChip at, float (&to)[2]) {
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(to[0]), "=f"(to[1]) : "r"(at.at) : "memory");
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

}  // namespace heddle::device::arch
