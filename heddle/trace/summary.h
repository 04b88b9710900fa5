// Where the time of a traced run went.
#pragma once

#include <string>
#include <vector>

#include "heddle/trace/causes.h"
#include "heddle/trace/timeline.h"

namespace heddle {

class Json;

// Times of the calls of one opcode, in nanoseconds per step, as means over all workers.
struct WorkTimes {
  std::string ops;
  u32 op = 0;          // 0: instructions without work; then Timeline::ops, counted from 1
  double calls = 0;    // per step
  double fetch = 0;    // between two instructions
  double late = 0;     // part of the waits: until the last producer had signalled
  double taken = 0;    // then: while the worker's thread ran another worker
  double hop = 0;      // the rest, until the wait was over
  double starved = 0;  // waiting for weights
  double compute = 0;  // in the body, without `starved`
  double signal = 0;
  double load = 0;   // the loader's time, parallel to all of these
  double phase = 0;  // from the first worker that was ready to the last that was done
  double path = 0;   // on the critical path, waits before the work included
  double bytes = 0;  // per step, all workers
  double flops = 0;

  double sum() const { return fetch + late + taken + hop + starved + compute + signal; }
};

struct TraceSummary {
  u32 steps = 0, workers = 0, units = 0;
  u64 begin = 0, end = 0;  // nanoseconds
  double step = 0;         // nanoseconds
  // per step, mean over the workers: before a worker could begin and after its last instruction
  double outside = 0;
  std::vector<WorkTimes> work;      // in the order of the opcodes, without those that have no event
  std::vector<PathStep> path;       // over all steps
  u64 lost = 0;                     // events
  std::vector<std::string> bodies;  // body_lines()

  // Nanoseconds per step in which units ran the body of `times`. Rates divide by it.
  double busy(const WorkTimes& times) const {
    return units > 0 ? (times.starved + times.compute) * workers / units : 0;
  }
  WorkTimes total() const;
};

// The time that workers were not in a body, by reason: nanoseconds per step, means over the workers.
struct IdleCause {
  const char* name;
  const char* meaning;
  double ns;
};
std::vector<IdleCause> idle_causes(const TraceSummary& summary);

TraceSummary summarise(const Timeline& timeline);
// Tables of 80 columns, microseconds, with what their words mean.
std::string to_text(const TraceSummary& summary);
// In nanoseconds, bytes and operations.
Json to_json(const TraceSummary& summary);

}  // namespace heddle
