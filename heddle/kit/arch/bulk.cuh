// Bulk copies of sm_90 and later: runs of bytes, and boxes of a tensor that a map describes (runtime/tensor_map.h). Loads complete
// on a barrier, which must expect their bytes; stores complete by groups of the thread that began them. One thread begins a copy.
#pragma once

#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/arch/tensor_map.h"

namespace heddle::device::arch {

// Where a box begins, in elements, the adjacent dimension first.
struct Corner2 {
  i32 x, y;
};
struct Corner3 {
  i32 x, y, z;
};
struct Corner4 {
  i32 x, y, z, w;
};

#define HEDDLE_LOAD_BOX(dims, more) \
  "cp.async.bulk.tensor." dims "d.shared::cluster.global.mbarrier::complete_tx::bytes" more
inline void load_box(OnChip to, const TensorMap* map, OnChip full, Corner2 at) {
  asm volatile(HEDDLE_LOAD_BOX("2", " [%0], [%1, {%3, %4}], [%2];")::"r"(to.at), "l"(map), "r"(full.at),
               "r"(at.x), "r"(at.y)
               : "memory");
}
inline void load_box(OnChip to, const TensorMap* map, OnChip full, Corner3 at) {
  asm volatile(HEDDLE_LOAD_BOX("3", " [%0], [%1, {%3, %4, %5}], [%2];")::"r"(to.at), "l"(map), "r"(full.at),
               "r"(at.x), "r"(at.y), "r"(at.z)
               : "memory");
}
inline void load_box(OnChip to, const TensorMap* map, OnChip full, Corner4 at) {
  asm volatile(HEDDLE_LOAD_BOX("4", " [%0], [%1, {%3, %4, %5, %6}], [%2];")::"r"(to.at), "l"(map),
               "r"(full.at), "r"(at.x), "r"(at.y), "r"(at.z), "r"(at.w)
               : "memory");
}
// Loads a box to the same place of each CTA of the cluster whose bit is in `ctas`, and counts it on its barrier there.
inline void load_box_to(u16 ctas, OnChip to, const TensorMap* map, OnChip full, Corner2 at) {
  asm volatile(HEDDLE_LOAD_BOX("2", ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;")::"r"(to.at),
               "l"(map), "r"(full.at), "r"(at.x), "r"(at.y), "h"(ctas)
               : "memory");
}
inline void load_box_to(u16 ctas, OnChip to, const TensorMap* map, OnChip full, Corner3 at) {
  asm volatile(HEDDLE_LOAD_BOX("3", ".multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], %6;")::"r"(to.at),
               "l"(map), "r"(full.at), "r"(at.x), "r"(at.y), "r"(at.z), "h"(ctas)
               : "memory");
}
inline void load_box_to(u16 ctas, OnChip to, const TensorMap* map, OnChip full, Corner4 at) {
  asm volatile(
      HEDDLE_LOAD_BOX("4", ".multicast::cluster [%0], [%1, {%3, %4, %5, %6}], [%2], %7;")::"r"(to.at),
      "l"(map), "r"(full.at), "r"(at.x), "r"(at.y), "r"(at.z), "r"(at.w), "h"(ctas)
      : "memory");
}
#undef HEDDLE_LOAD_BOX

// Stores leave out what lies outside of the tensor.
inline void store_box(const TensorMap* map, OnChip from, Corner2 at) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map),
               "r"(from.at), "r"(at.x), "r"(at.y)
               : "memory");
}
inline void store_box(const TensorMap* map, OnChip from, Corner3 at) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(map),
               "r"(from.at), "r"(at.x), "r"(at.y), "r"(at.z)
               : "memory");
}
inline void store_box(const TensorMap* map, OnChip from, Corner4 at) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(map),
      "r"(from.at), "r"(at.x), "r"(at.y), "r"(at.z), "r"(at.w)
      : "memory");
}
// Adds a box to memory, in no fixed order with others.
inline void add_box(const TensorMap* map, OnChip from, Corner2 at) {
  asm volatile(
      "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map),
      "r"(from.at), "r"(at.x), "r"(at.y)
      : "memory");
}

// Runs of `bytes`, a multiple of 16.
inline void load_bytes(OnChip to, const void* from, u32 bytes, OnChip full) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to.at),
      "l"(from), "r"(bytes), "r"(full.at)
      : "memory");
}
inline void store_bytes(void* to, OnChip from, u32 bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from.at),
               "r"(bytes)
               : "memory");
}
inline void add_floats(float* to, OnChip from, u32 bytes) {
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to),
               "r"(from.at), "r"(bytes)
               : "memory");
}

// Stores of this thread since the last call are a group.
inline void commit_stores() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
// Waits until at most kLeft groups still read shared memory, or are not yet in memory.
template <i32 kLeft>
inline void wait_stores_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kLeft) : "memory");
}
template <i32 kLeft>
inline void wait_stores() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(kLeft) : "memory");
}

// Makes what this thread has written on chip visible to bulk copies and products.
inline void show_to_copies() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
// Makes what others have written in memory, and this thread has seen, visible to its bulk copies.
inline void show_memory_to_copies() {
  asm volatile("fence.proxy.async.global;" ::: "memory");
}

inline void prefetch_map(const TensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

}  // namespace heddle::device::arch
