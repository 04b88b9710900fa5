// The primitives of an emulated GPU. It replaces heddle/kit/arch/common.cuh.
#pragma once

#include "heddle/base/dtype.h"
#include "heddle/base/types.h"

namespace heddle::device::arch {

constexpr u32 kLoaderThreads = 1;

inline float reciprocal(float x) {
  return 1 / x;
}
inline float rsqrt(float x) {
  return 1 / std::sqrt(x);
}
inline float exp2(float x) {
  return std::exp2(x);
}
inline float max_or_nan(float a, float b) {
  return a != a || a > b ? a : b;
}
inline float min_or_nan(float a, float b) {
  return a != a || a < b ? a : b;
}
inline float from_f16(u16 bits) {
  return float(__builtin_bit_cast(_Float16, bits));
}
inline u16 to_f16(float value) {
  return __builtin_bit_cast(u16, _Float16(value));
}
inline u16 to_bf16(float value) {
  const u32 bits = __builtin_bit_cast(u32, value);
  if (value != value) return 0x7fff;
  return u16((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline u32 pack_bf16(float first, float second) {
  return u32(to_bf16(second)) << 16 | to_bf16(first);
}
inline u32 pack_f16(float first, float second) {
  return u32(to_f16(second)) << 16 | to_f16(first);
}
template <bool kHigh = false>
inline void from_e4m3(u32 bits, float& first, float& second) {
  const auto convert = [](u32 byte) {
    const int exponent = int(byte >> 3 & 15), mantissa = int(byte & 7);
    const float size =
        exponent == 0 ? std::ldexp(float(mantissa), -9) : std::ldexp(float(8 + mantissa), exponent - 10);
    return (byte & 0x7f) == 0x7f ? NAN : (byte & 0x80) != 0 ? -size : size;
  };
  constexpr u32 kShift = kHigh ? 16 : 0;
  first = convert(bits >> kShift), second = convert(bits >> (kShift + 8));
}
template <bool kHigh = false>
inline u32 from_e4m3_to_f16(u32 bits) {
  float first, second;
  from_e4m3<kHigh>(bits, first, second);
  return pack_f16(first, second);
}
constexpr bool kRoundsToCodes = false;
inline u32 pack_e4m3(float, float) {
  return 0;
}
inline u32 pack_e5m2(float, float) {
  return 0;
}
inline float from_bf16_bits(u32 bits) {
  return __builtin_bit_cast(float, bits << 16);
}
inline u32 multiply_add_bf16(u32 a, u32 b, u32 c) {
  const auto half = [](u32 bits, u32 shift) { return from_bf16_bits(bits >> shift & 0xffff); };
  const auto sum = [&](u32 shift) { return half(a, shift) * half(b, shift) + half(c, shift); };
  return pack_bf16(sum(0), sum(16));
}
inline u32 multiply_add_f16(u32 a, u32 b, u32 c) {
  const auto sum = [&](u32 shift) {
    return from_f16(u16(a >> shift)) * from_f16(u16(b >> shift)) + from_f16(u16(c >> shift));
  };
  return pack_f16(sum(0), sum(16));
}

inline u32 thread() {
  return threadIdx.x;
}
inline void forget(uint4&) {}

struct OnChip {
  u8* at;
  friend OnChip operator+(OnChip a, u32 bytes) { return {a.at + bytes}; }
};
inline OnChip on_chip(const void* address) {
  return {static_cast<u8*>(const_cast<void*>(address))};
}
inline void forget(OnChip&) {}
inline uint4 load_word(OnChip from) {
  return *reinterpret_cast<const uint4*>(from.at);
}

inline u8* dynamic_shared() {
  return emulated::current->dynamic;
}
[[noreturn]] inline void exit_thread() {
  emulated::leave();
}

// A barrier in shared memory. A phase ends when all of its arrivals and all of its bytes have come.
struct Phase {
  u16 arrivals, pending;
  i32 bytes : 31;
  u32 parity : 1;
};
static_assert(sizeof(Phase) == 8);
inline Phase& phase_of(u64* barrier) {
  return *reinterpret_cast<Phase*>(barrier);
}
inline void advance_if_over(Phase& phase) {
  if (phase.pending > 0 || phase.bytes != 0) return;
  phase.pending = phase.arrivals;
  phase.parity ^= 1;
  emulated::current->progress = true;
}
inline void init_barrier(u64* barrier, u32 arrivals) {
  phase_of(barrier) = {u16(arrivals), u16(arrivals), 0, 0};
}
inline void arrive(u64* barrier) {
  --phase_of(barrier).pending;
  advance_if_over(phase_of(barrier));
}
inline u64* barrier_at(OnChip at) {
  return reinterpret_cast<u64*>(at.at);
}
inline void arrive(OnChip barrier) {
  arrive(barrier_at(barrier));
}
inline void fence_barriers() {}
inline bool barrier_is_past(OnChip barrier, u32 parity) {
  return phase_of(barrier_at(barrier)).parity != parity;
}

// One of the copies into a ring slot may land.
inline void land_copy() {
  emulated::RingCopy copy;
  if (!emulated::take_ring_copy(copy)) return;
  std::memcpy(copy.to, copy.from, copy.bytes);
  Phase& phase = phase_of(static_cast<u64*>(copy.barrier));
  phase.bytes -= i32(copy.bytes);
  advance_if_over(phase);
  emulated::current->progress = true;
}
inline bool barrier_passed(u64* barrier, u32 parity) {
  if (phase_of(barrier).parity != parity) return true;
  land_copy();
  emulated::yield("a barrier in shared memory");
  return false;
}
inline bool barrier_passed(OnChip barrier, u32 parity) {
  return barrier_passed(barrier_at(barrier), parity);
}
inline void copy_to_slot(OnChip to, const u8* from, u32 bytes, OnChip full) {
  u64* barrier = barrier_at(full);
  emulated::check_copy(to.at, from);
  std::memset(to.at, 0xff, bytes);  // NaNs for a reader that does not wait
  emulated::add_ring_copy({to.at, from, bytes, barrier});
  phase_of(barrier).bytes += i32(bytes);
  arrive(barrier);
}

template <u32 kNumber, u32 kThreads>
inline void sync_threads() {
  emulated::meet(emulated::current->barriers[kNumber], kThreads, "the consumers");
}
template <u32 kThreads>
inline void sync_threads(u32 number) {
  emulated::meet(emulated::current->barriers[number], kThreads, "a group");
}

inline u32 load_acquire(const u32* address) {
  emulated::yield("a word in memory");
  return __atomic_load_n(address, __ATOMIC_ACQUIRE);
}
inline u32 load_relaxed(const u32* address) {
  return __atomic_load_n(address, __ATOMIC_RELAXED);
}
inline u32 look_at(const volatile u32& flag) {
  return __atomic_load_n(&flag, __ATOMIC_ACQUIRE);
}
inline void show(volatile u32& flag, u32 value) {
  __atomic_store_n(&flag, value, __ATOMIC_RELEASE);
}
inline void add_release(u32* address, u32 amount) {
  __atomic_fetch_add(address, amount, __ATOMIC_RELEASE);
}
inline uint4 load_constant(const void* address) {
  return *static_cast<const uint4*>(address);
}
inline void store_once(void* to, uint4 bits) {
  *static_cast<uint4*>(to) = bits;
}

// A thread's copies to shared memory. They land when it waits for their group.
inline void copy_bytes(void* to, const void* from, i32 bytes) {
  emulated::check_copy(to, bytes > 0 ? from : nullptr);  // rows that are not there may lie anywhere
  std::memset(to, 0xff, 16);                             // NaNs for a reader that does not wait
  emulated::do_later(emulated::Later::kCopies, emulated::work_of([=] {
                       std::memset(to, 0, 16);
                       std::memcpy(to, from, size_t(bytes));
                     }));
}
inline void copy_word(void* to, const void* from, bool there) {
  copy_bytes(to, from, there ? 16 : 0);
}
inline void copy_half_sector(void* to, const void* from) {
  copy_bytes(to, from, 16);
}
inline void commit_copies() {
  emulated::end_group(emulated::Later::kCopies);
}
inline void wait_copies(i32 left) {
  emulated::wait_groups(emulated::Later::kCopies, u32(left));
}

// Lane l gives the address of row l % 8 of matrix l / 8, and gets elements {2 c, 2 c + 1} of row l / 4, c = l % 4.
template <u32 kCount>
inline void load_matrices(u32 (&to)[kCount], const void* row) {
  const auto* rows = emulated::exchange(reinterpret_cast<u64>(row));
  const u32 lane = threadIdx.x % 32;
  for (u32 i = 0; i < kCount; ++i)
    std::memcpy(&to[i], reinterpret_cast<const u8*>(rows[8 * i + lane / 4]) + lane % 4 * 4, 4);
}

// Same, transposed: elements l / 4 of rows 2 c and 2 c + 1.
inline void load_transposed(u32 (&to)[4], const void* row) {
  const auto* rows = emulated::exchange(reinterpret_cast<u64>(row));
  const u32 lane = threadIdx.x % 32;
  for (u32 i = 0; i < 4; ++i) {
    const auto element = [&](u32 k) {
      return u32(reinterpret_cast<const u16*>(rows[8 * i + lane % 4 * 2 + k])[lane / 4]);
    };
    to[i] = element(0) | element(1) << 16;
  }
}

// Lane l gives the address of row l % 8 of matrix l / 8, and elements {2 c, 2 c + 1} of row l / 4 of each.
template <class... Words>
inline void store_matrices(OnChip row, Words... words) {
  const auto* rows = emulated::exchange(reinterpret_cast<u64>(row.at));
  const u32 lane = threadIdx.x % 32;
  const u32 all[] = {words...};
  for (u32 i = 0; i < sizeof...(words); ++i)
    std::memcpy(reinterpret_cast<u8*>(rows[8 * i + lane / 4]) + lane % 4 * 4, &all[i], 4);
}
// Same, transposed: elements l / 4 of rows 2 c and 2 c + 1.
template <class... Words>
inline void store_transposed(OnChip row, Words... words) {
  const auto* rows = emulated::exchange(reinterpret_cast<u64>(row.at));
  const u32 lane = threadIdx.x % 32;
  const u32 all[] = {words...};
  for (u32 i = 0; i < sizeof...(words); ++i)
    for (u32 k = 0; k < 2; ++k)
      reinterpret_cast<u16*>(rows[8 * i + lane % 4 * 2 + k])[lane / 4] = u16(all[i] >> (16 * k));
}
inline void store_shared(OnChip at, float first, float second) {
  reinterpret_cast<float*>(at.at)[0] = first, reinterpret_cast<float*>(at.at)[1] = second;
}
inline u32 load_shared(OnChip at) {
  return *reinterpret_cast<const u32*>(at.at);
}

// sums[16, 8] += a[16, 8 kPer] b[8 kPer, 8], with the lane layout of mma.m16n8, of registers with kPer elements.
// left(word, i), right(word, i): element i of a register.
template <u32 kPer, class Left, class Right>
inline void multiply_registers(float (&sums)[4], const u32 (&a)[4], const u32 (&b)[2], Left&& left_of,
                               Right&& right_of) {
  u32 left[4][32], right[2][32];
  for (u32 i = 0; i < 4; ++i) {
    const auto* all = emulated::exchange(a[i]);
    for (u32 l = 0; l < 32; ++l) left[i][l] = u32(all[l]);
  }
  for (u32 i = 0; i < 2; ++i) {
    const auto* all = emulated::exchange(b[i]);
    for (u32 l = 0; l < 32; ++l) right[i][l] = u32(all[l]);
  }
  const u32 lane = threadIdx.x % 32;
  for (u32 i = 0; i < 4; ++i) {
    const u32 m = lane / 4 + i / 2 * 8, n = lane % 4 * 2 + i % 2;
    for (u32 k = 0; k < 8 * kPer; ++k) {
      const u32 half = k / (4 * kPer), in_lane = k / kPer % 4;
      sums[i] += left_of(left[half * 2 + m / 8][m % 8 * 4 + in_lane], k % kPer) *
                 right_of(right[half][n * 4 + in_lane], k % kPer);
    }
  }
}
template <bool kBf16>
inline void multiply_add(float (&sums)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  const auto element = [](u32 word, u32 i) {
    const u16 bits = u16(word >> (16 * i));
    return kBf16 ? from_bf16_bits(bits) : from_f16(bits);
  };
  multiply_registers<2>(sums, a, b, element, element);
}
constexpr bool kMultipliesCodes = true;
template <DType kType>
inline float code_of(u32 word, u32 i) {
  const u32 byte = word >> (8 * i) & 0xff;
  float value = from_f16(u16(byte << 8)), other;
  if constexpr (kType == DType::kF8E4M3) from_e4m3(byte, value, other);
  return value;
}
template <DType kLeft, DType kRight>
inline void multiply_codes(float (&sums)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  multiply_registers<4>(sums, a, b, code_of<kLeft>, code_of<kRight>);
}

constexpr bool kMovesRegisters = true;
template <u32 kCount>
inline void take_registers() {}
template <u32 kCount>
inline void give_registers() {}

inline u32 multiprocessor() {
  return emulated::current->multiprocessor;
}
inline u64 nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return u64(now.tv_sec) * 1'000'000'000 + u64(now.tv_nsec);
}

inline u64 ticks() {
  return nanoseconds();
}

inline void idle() {
  emulated::yield("a word in shared memory");
}

inline void wait_for_kernel_before() {}
inline void let_next_kernel_start() {}

}  // namespace heddle::device::arch
