// The report of a failed run: which wait exceeded its limit, which worker waits for which, and where each
// worker and its loader stopped. A fault ends a run within the limit, whatever waits: an edge, the verdict of
// a watched run, panels. Consumers that give up on panels continue with the bytes present and leave together
// at the next edge, because one that left alone would hang the others at a barrier. The loader and the
// controller leave after them.
#pragma once

#include <span>
#include <string>

#include "heddle/backend/cuda/device/params.h"
#include "heddle/ir/program/program.h"

namespace heddle::cuda {

struct FaultReport {
  std::string_view executor;
  const Program& program;
  const FaultRecord& fault;
  double limit_ms;
  std::span<const u32> counters;
  std::span<const WorkerPlace> places;  // by worker; empty: the executor's CTAs are no workers
};

std::string text_of(const FaultReport& report);

}  // namespace heddle::cuda
