// Watched runs, as executors do them.
#pragma once

#include "heddle/ir/executor.h"

namespace heddle {

// The buffers of a program's step record. Throws Error where it has none, or samples nothing into it.
struct WatchedRecord {
  u32 host = kNoBuffer, device = kNoBuffer;  // the record's parts
  u32 worker = 0;                            // whose tile chooses tokens

  explicit WatchedRecord(const Program& program);
};

// A watched run, by runs of one step each. `space`: where `memory` lies; null: with the host.
RunReport run_by_steps(Executor& executor, int steps, const StepWatch& watch, const Program& program,
                       const Memory& memory, MemorySpace* space = nullptr);

}  // namespace heddle
