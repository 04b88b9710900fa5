// Primitives of every architecture from sm_80 on: thin wrappers of PTX instructions. Which way a primitive takes follows from the
// architecture that is compiled for, so that these files can stand in every frame.
#pragma once

<<<<<<< HEAD
#include "heddle/base/dtype.h"
#include "heddle/base/types.h"

namespace heddle::device::arch {

// 1 / x, within an ulp.
inline float reciprocal(float x) {
  float value;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"(x));
  return value;
}
// 1 / sqrt(x), within 2 ulp.
inline float rsqrt(float x) {
  float value;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"(x));
  return value;
}
// 2^x, within 2 ulp.
inline float exp2(float x) {
  float value;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"(x));
  return value;
}
// The larger one and the smaller one, or NaN where either is NaN; as fast as those that lose it.
inline float max_or_nan(float a, float b) {
  float value;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(value) : "f"(a), "f"(b));
  return value;
}
inline float min_or_nan(float a, float b) {
  float value;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(value) : "f"(a), "f"(b));
  return value;
}
inline float from_f16(u16 bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
inline u16 to_bf16(float value) {
  u16 bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
inline u16 to_f16(float value) {
  u16 bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

// Two f8e4m3 in the low half of `bits`, the first one lower.
inline void from_e4m3(u32 bits, float& first, float& second) {
#if __CUDA_ARCH__ >= 890
  u32 halves;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(u16(bits)));
  first = from_f16(u16(halves)), second = from_f16(u16(halves >> 16));
#else
  // The bits of an f16 that is 2^8 times less, except for NaN.
  const auto convert = [](u32 byte) {
    const float value = from_f16(u16((byte & 0x80) << 8 | (byte & 0x7f) << 7)) * 256.0f;
    return (byte & 0x7f) == 0x7f ? __int_as_float(0x7fffffff) : value;
  };
  first = convert(bits), second = convert(bits >> 8);
#endif
}

// True where the hardware rounds to 8-bit floats: pack_e4m3 and pack_e5m2 give two of them in the low half of a word, the first one
// lower; larger numbers become the largest.
#if __CUDA_ARCH__ >= 890
constexpr bool kRoundsToCodes = true;
inline u32 pack_e4m3(float first, float second) {
  u16 codes;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(second), "f"(first));
  return codes;
}
inline u32 pack_e5m2(float first, float second) {
  u16 codes;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(second), "f"(first));
  return codes;
}
#else
constexpr bool kRoundsToCodes = false;
inline u32 pack_e4m3(float, float) {
  return 0;
}
inline u32 pack_e5m2(float, float) {
  return 0;
}
#endif

// Packs two 16-bit floats in a word, the first in its low half.
inline u32 pack_bf16(float first, float second) {
  u32 bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(second), "f"(first));
  return bits;
}
inline u32 pack_f16(float first, float second) {
  u32 bits;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(second), "f"(first));
  return bits;
}

// The dynamic shared memory of the launch, which does not include the kernel's own __shared__ variables.
inline u8* dynamic_shared() {
  extern __shared__ __align__(128) u8 bytes[];
  return bytes;
}
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

// Loads 8 x 8 matrices of 16-bit elements; each lane gives the address of a row of 16 bytes.
inline void load_matrices(u32 (&to)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(on_chip(row).at)
               : "memory");
}
inline void load_matrices(u32 (&to)[2], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(to[0]), "=r"(to[1])
               : "r"(on_chip(row).at)
               : "memory");
}
// Loads four matrices, each transposed.
inline void load_transposed(u32 (&to)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(on_chip(row).at)
               : "memory");
}
// sums += a b: [16, 16] times [16, 8].
template <bool kBf16>
inline void multiply_add(float (&sums)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  if constexpr (kBf16)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, "
        "%2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, "
        "%2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// sums += a b: [16, 32] times [32, 8] of 8-bit floats. sm_89 and sm_120 have an instruction, whose sums may have fewer bits of fraction
// than an f32; for sm_90 and sm_100 NVRTC 13.0 converts the elements to f16 and multiplies these.
#if __CUDA_ARCH__ >= 890
constexpr bool kMultipliesCodes = true;
template <DType kLeft, DType kRight>
inline void multiply_codes(float (&sums)[4], const u32 (&a)[4], const u32 (&b)[2]) {
#define HEDDLE_MULTIPLY_CODES(left, right)                                   \
  asm("mma.sync.aligned.m16n8k32.row.col.f32." left "." right                \
      ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])           \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
  if constexpr (kLeft == DType::kF8E4M3 && kRight == DType::kF8E4M3)
    HEDDLE_MULTIPLY_CODES("e4m3", "e4m3");
  else if constexpr (kLeft == DType::kF8E4M3)
    HEDDLE_MULTIPLY_CODES("e4m3", "e5m2");
  else if constexpr (kRight == DType::kF8E4M3)
    HEDDLE_MULTIPLY_CODES("e5m2", "e4m3");
  else
    HEDDLE_MULTIPLY_CODES("e5m2", "e5m2");
#undef HEDDLE_MULTIPLY_CODES
}
#else
constexpr bool kMultipliesCodes = false;
template <DType, DType>
inline void multiply_codes(float (&)[4], const u32 (&)[4], const u32 (&)[2]) {}
#endif

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
// Does as barrier_is_past, but from sm_90 on it waits some time for the end.
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
=======
#include "heddle/kit/arch/memory.cuh"
#include "heddle/kit/arch/mma.cuh"
#include "heddle/kit/arch/numbers.cuh"
#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/arch/thread.cuh"
>>>>>>> 27cbec7a (Split primitives by what they are about)
