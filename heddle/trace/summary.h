// Where the time of a traced run went.
#pragma once

#include <string>
#include <vector>

#include "heddle/ir/program.h"
#include "heddle/ir/trace.h"

namespace heddle {

// What the workers did with the calls of one opcode: nanoseconds of a step, means over all workers.
struct WorkTimes {
  std::string ops;
  double calls = 0;    // of a step
  double fetch = 0;    // between two instructions
  double late = 0;     // of the waits: until the last producer had signalled
  double hop = 0;      // and from then on, until the wait was over
  double starved = 0;  // for weights on their way
  double compute = 0;  // in the body, but for that
  double signal = 0;
  double load = 0;   // the loader's, beside all of these
  double phase = 0;  // from the first worker that was ready to the last that was done

  double sum() const { return fetch + late + hop + starved + compute + signal; }
};

struct TraceSummary {
  u32 steps = 0, workers = 0;
  double step = 0;              // nanoseconds
  std::vector<WorkTimes> work;  // in the order of the opcodes; those without an event are left out
  u64 lost = 0;                 // events
};

TraceSummary summarise(const Program& program, const Trace& trace);
// A table, microseconds.
std::string to_text(const TraceSummary& summary);

}  // namespace heddle
