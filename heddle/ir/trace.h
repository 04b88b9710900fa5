// What the workers of a program did in a run.
#pragma once

#include <vector>

#include "heddle/ir/trace_event.h"

namespace heddle {

struct TraceLane {
  u32 worker = 0;
  TraceRole role = TraceRole::kConsumers;
  u32 unit = 0;                    // the thread or multiprocessor that the worker ran on
  std::vector<TraceEvent> events;  // in order; nanoseconds since the run began, on one clock for all lanes
  u64 lost = 0;                    // events that came when the lane was full
};

struct Trace {
  std::vector<TraceLane> lanes;
};

}  // namespace heddle
