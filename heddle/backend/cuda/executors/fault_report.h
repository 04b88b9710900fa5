// What a run that was given up says: which wait was too long, who waits for whom, and where each worker and its loader
// stand.
#pragma once

#include <span>
#include <string>

#include "heddle/backend/cuda/device/params.h"
#include "heddle/ir/program.h"

namespace heddle::cuda {

struct FaultReport {
  std::string_view executor;
  const Program& program;
  const FaultRecord& fault;
  double limit_ms;
  std::span<const u32> counters;
  std::span<const WorkerPlace> places;  // of each worker; empty: the executor's CTAs are no workers
};

std::string text_of(const FaultReport& report);

}  // namespace heddle::cuda
