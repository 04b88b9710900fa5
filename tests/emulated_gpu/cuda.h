// Types, functions and keywords of CUDA C++ that device programs use, on an emulated GPU. It follows device.h
// in one header.
#pragma once

struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};

inline float __int_as_float(int bits) {
  return __builtin_bit_cast(float, bits);
}
inline float __uint_as_float(unsigned bits) {
  return __builtin_bit_cast(float, bits);
}
inline int __float_as_int(float value) {
  return __builtin_bit_cast(int, value);
}
inline unsigned __float_as_uint(float value) {
  return __builtin_bit_cast(unsigned, value);
}
inline float __fmaf_rn(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
inline float __fsqrt_rn(float a) {
  return __builtin_sqrtf(a);
}

template <class T>
T __shfl_sync(unsigned, T value, int lane) {
  return emulated::from_lane(value, unsigned(lane));
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  return emulated::from_lane(value, threadIdx.x % emulated::kWarp ^ unsigned(mask));
}
inline unsigned __ballot_sync(unsigned, bool holds) {
  const auto* all = emulated::exchange(holds);
  unsigned votes = 0;
  for (unsigned lane = 0; lane < emulated::kWarp; ++lane) votes |= unsigned(all[lane] != 0) << lane;
  return votes;
}
inline int __popc(unsigned bits) {
  return __builtin_popcount(bits);
}
inline void __syncwarp() {
  emulated::exchange(0);
}
inline void __syncthreads() {
  emulated::meet(emulated::current->barriers[0], emulated::current->threads, "the CTA");
}

inline unsigned atomicAdd(unsigned* at, unsigned value) {
  return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}
inline unsigned atomicExch(unsigned* at, unsigned value) {
  return __atomic_exchange_n(at, value, __ATOMIC_RELAXED);
}
inline unsigned atomicCAS(unsigned* at, unsigned expected, unsigned value) {
  __atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}

#define __all_sync(mask, holds) (__ballot_sync(mask, holds) == ~0u)
#define __threadfence() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define __threadfence_block __threadfence
#define __threadfence_system __threadfence
#define __expf expf
#define __shared__ static thread_local
#define __global__ __attribute__((visibility("default")))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
// The compiler decides: with all of a matmul in one function it takes three times as long.
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
