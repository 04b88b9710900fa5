#include "heddle/backend/cuda/cluster_counters.h"

#include <algorithm>

namespace heddle::cuda {

ClusterCounters cluster_counters(const Program& program) {
  ClusterCounters counters{.places = std::vector<u32>(program.counters.size(), kNoCounter)};
  std::vector<u32> next(program.workers.size(), 0);  // by cluster
  for (size_t w = 0; w < program.workers.size(); ++w)
    for (const Instruction& instruction : program.workers[w]) {
      const u32 counter = instruction.signal.counter;
      if (counter == kNoCounter || instruction.signal_kind() != EdgeKind::kCluster) continue;
      u32& place = counters.places[counter];
      if (place == kNoCounter) place = next[size_t(program.topology.cluster_of(i32(w)))]++;
    }
  for (u32 count : next) counters.count = std::max(counters.count, count);
  return counters;
}

}  // namespace heddle::cuda
