// The primitives of clusters on an emulated GPU. It replaces heddle/backend/cuda/arch/cluster.cuh.
#pragma once

namespace heddle::device::arch {

inline u32 cta_in_cluster() {
  return emulated::current->rank;
}
inline void sync_cluster() {
  emulated::meet_cluster();
}
inline OnChip at_cta(OnChip place, u32 cta) {
  return {emulated::current->dynamics[cta] + (place.at - emulated::current->dynamic)};
}
inline float load_float_at(OnChip from) {
  return *reinterpret_cast<const float*>(from.at);
}

}  // namespace heddle::device::arch
