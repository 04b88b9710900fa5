// Clusters of CTAs that share memory on chip, on sm_90 and later.
#pragma once

#include "heddle/kit/arch/mbarrier.cuh"

namespace heddle::device::arch {

// The number of this CTA in its cluster.
inline u32 cta_in_cluster() {
  u32 rank;
  asm volatile("mov.u32 %0, %cluster_ctarank;" : "=r"(rank));
  return rank;
}

// A barrier of all threads of the cluster: each sees what the others wrote before it.
inline void sync_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Two halves of sync_cluster(): wait_for_cluster() waits until all threads have arrived.
inline void arrive_at_cluster() {
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
}
inline void wait_for_cluster() {
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

// The address that CTA `cta` has at this place; for the functions below alone.
inline OnChip at_cta(OnChip place, u32 cta) {
  u32 there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(place.at), "r"(cta));
  return {there};
}

// Stores that count their bytes on a barrier of the same CTA, both from at_cta(). They need no fence, and take as long whatever
// the copies under way.
inline void store_counted(OnChip to, u32 value, OnChip barrier) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(to.at),
               "r"(value), "r"(barrier.at)
               : "memory");
}
inline void store_counted(OnChip to, u32 first, u32 second, OnChip barrier) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];" ::"r"(to.at),
      "r"(first), "r"(second), "r"(barrier.at)
      : "memory");
}

inline void store_counted(OnChip to, const float (&values)[4], OnChip barrier) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
          to.at),
      "f"(values[0]), "f"(values[1]), "f"(values[2]), "f"(values[3]), "r"(barrier.at)
      : "memory");
}

// A barrier of this CTA that counts bytes alone. All threads wait for those of a phase.
inline void init_counted(OnChip barrier) {
  init_barrier(barrier, 1u);
}
inline void wait_counted(OnChip barrier, u32 bytes, u32 parity) {
  if (threadIdx.x == 0) expect_bytes(barrier, bytes);
  wait_barrier(barrier, parity);
}

inline float load_float_at(OnChip from) {
  float value;
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(from.at) : "memory");
  return value;
}

}  // namespace heddle::device::arch
