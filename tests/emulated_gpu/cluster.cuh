// The primitives of clusters on an emulated GPU. It replaces heddle/kit/arch/cluster.cuh.
#pragma once

#include "heddle/kit/arch/common.cuh"

namespace heddle::device::arch {

inline u32 cta_in_cluster() {
  return emulated::current->rank;
}
inline void sync_cluster() {
  emulated::meet_cluster();
}
inline void arrive_at_cluster() {}
inline void wait_for_cluster() {
  emulated::meet_cluster();
}
inline OnChip at_cta(OnChip place, u32 cta) {
  return {emulated::current->dynamics[cta] + (place.at - emulated::current->dynamic)};
}
// Values are there once the cluster has met.
inline void init_counted(OnChip) {}
inline void store_counted(OnChip to, u32 value, OnChip) {
  *reinterpret_cast<u32*>(to.at) = value;
}
inline void wait_counted(OnChip, u32, u32) {
  emulated::meet_cluster();
}
inline float load_float_at(OnChip from) {
  return *reinterpret_cast<const float*>(from.at);
}

}  // namespace heddle::device::arch
