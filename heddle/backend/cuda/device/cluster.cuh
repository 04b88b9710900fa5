// Edges inside a cluster: each of its CTAs has the cluster's counters on chip. A signal adds to every copy, a wait looks at
// its own, so that no poll goes to memory. They count from the beginning of a launch.
#pragma once

#include "heddle/backend/cuda/device/params.h"

namespace heddle::device {

constexpr bool kHasClusterEdges = kClusterCounters > 0;

// Where an instruction's counters are among the cluster's, as the controller has looked them up.
struct ClusterPlaces {
  u32 at[kHasClusterEdges ? kMaxWaits + 1 : 1];  // of its waits; of its signal

  // By the lanes of a warp.
  void fetch(const KernelParams& p, const Instruction& instruction) {
    const u32 lane = arch::thread() % 32;
    if (lane > kMaxWaits) return;
    const bool signals = lane == kMaxWaits;
    const u32 counter = signals ? instruction.signal.counter : instruction.waits[lane].counter;
    const EdgeKind kind = signals ? instruction.signal_kind() : instruction.wait_kind(int(lane));
    at[lane] = counter != kNoCounter && kind == EdgeKind::kCluster ? p.cluster_places[counter] : 0;
  }
};

class ClusterCounters {
 public:
  // By all threads of the CTA, ahead of the first edge.
  static void begin() {
    for (u32 i = arch::thread(); i < kClusterCounters; i += blockDim.x) all()[i] = 0;
    arch::begin_cluster();
  }
  // By a warp whose CTA signals no more: others still may.
  static void end() { arch::end_cluster(); }

  // Behind a barrier of those whose writes it says are there; by one thread.
  static void add(u32 place, u32 amount) {
    for (u32 cta = 0; cta < arch::cluster_size(); ++cta)
      arch::add_release_on_chip(arch::of_cta(arch::on_chip(all() + place), cta), amount);
  }
  static u32 seen(u32 place) { return arch::load_acquire_on_chip(arch::on_chip(all() + place)); }

 private:
  static u32* all() {
    __shared__ u32 counters[kHasClusterEdges ? kClusterCounters : 1];
    return counters;
  }
};

}  // namespace heddle::device
