// Watched runs: what executors share. StepWatch in ir/executor/executor.h says what a watched run is.
#pragma once

#include "heddle/ir/executor/executor.h"

namespace heddle {

// The buffers of a program's step record. Throws Error when the program has none, or samples nothing into it.
struct WatchedRecord {
  u32 host = kNoBuffer, device = kNoBuffer;  // the record's parts
  u32 worker = 0;                            // the worker whose tile chooses tokens

  explicit WatchedRecord(const Program& program);
};

// Does a watched run as separate runs of one step each. `space`: where `memory` lies; null: in the host's
// memory.
RunReport run_by_steps(Executor& executor, int steps, const StepWatch& watch, const Program& program,
                       const Memory& memory, MemorySpace* space = nullptr);

}  // namespace heddle
