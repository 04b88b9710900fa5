// Which counters have their edges inside a cluster, and where each lies on chip (device/cluster.cuh).
#pragma once

#include <vector>

#include "heddle/ir/program.h"

namespace heddle::cuda {

struct ClusterCounters {
  std::vector<u32> places;  // by counter; kNoCounter: in memory
  u32 count = 0;            // of the cluster that has most; clusters number theirs on their own
};

ClusterCounters cluster_counters(const Program& program);

}  // namespace heddle::cuda
