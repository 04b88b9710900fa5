// The threads that a variant (x.sm80.cuh) runs on and the kernel that it is part of. Variants may use both besides the Block
// language. They are constants of a kernel, which its source defines (program_source.cpp).
#pragma once

#include "heddle/backend/cuda/device/params.h"
#include "heddle/kit/arch/thread.cuh"
#include "heddle/kit/arch/wgmma_products.cuh"
#include "heddle/kit/attention/products.cuh"
#include "heddle/kit/attention/running_softmax.cuh"
#include "heddle/kit/attention/scores.cuh"
#include "heddle/kit/value/value.cuh"

namespace heddle::device {

constexpr i32 kConsumers = 32 * kWarps;
// Registers of a thread, where they move from the other warps: together they
// fill a multiprocessor's 65,536.
constexpr u32 kHelperRegisters = 40;
constexpr u32 kFreeRegisters = (65536 - 32 * kHelperWarps * kHelperRegisters) / u32(kConsumers) / 8 * 8;
constexpr u32 kConsumerRegisters = kFreeRegisters < 248 ? kFreeRegisters : 248;

// A barrier of all consumers: each sees what the others wrote on chip before it.
inline void sync_consumers() {
  arch::sync_threads<1, kConsumers>();
}

// The threads of a block: the first warps of a CTA. Nothing is kept: the index
// is read where it is asked for.
struct Team {
  static i32 thread() { return i32(arch::thread()); }
  static i32 warp() { return i32(arch::thread() / 32); }
  static i32 lane() { return i32(arch::thread() % 32); }
  static constexpr i32 size() { return kConsumers; }
  static constexpr i32 warps() { return kWarps; }

  // A barrier: after it, all threads see what each wrote before it, on chip and in memory.
  static void sync() { sync_consumers(); }

  // All lanes of a warp call these together. from_lane: the value of lane `lane`. across: the value of the lane whose number differs
  // in the bits of `bits`. vote: a bit for each lane in which `holds` is true.
  template <class Value>
  static Value from_lane(Value value, i32 lane) {
    return __shfl_sync(~0u, value, lane);
  }
  template <class Value>
  static Value across(Value value, i32 bits) {
    return __shfl_xor_sync(~0u, value, bits);
  }
  static u32 vote(bool holds) { return __ballot_sync(~0u, holds); }
  // Reduces the values of a warp's lanes; all lanes get the result. For those of all threads: block.reduce(op, value).
  template <class Op>
  static float over_warp(Op op, float mine) {
#pragma unroll
    for (i32 bits = 16; bits > 0; bits /= 2) mine = combine(op, mine, across(mine, bits));
    return mine;
  }
};

// The facts that a kernel is compiled for.
struct Kernel {
  static constexpr bool kSeveralRows = kFewRows;  // its steps may have more than one row
  static constexpr bool kKnowsSizes = kKnown;     // sizes are compiled in, or forms of them
  // All its products have one row, whose weights come through the ring.
  static constexpr bool kDrawsOneRow = kDraws && !kFewRows;
  // Groups of four warps may multiply together, from chip or registers (kit/arch/wgmma_products.cuh).
  static constexpr bool kMultipliesTogether = kOneOp && arch::kHasProducts;
  static constexpr i32 kStreamRows = heddle::kStreamRows;  // tiles of more rows draw nothing through the ring

  // True if weights, or tensors that variants read, have elements of this type.
  static constexpr bool uses(DType dtype) { return kUses[int(dtype)]; }
};

}  // namespace heddle::device
