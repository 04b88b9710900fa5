// Waits as executors evaluate them, and the dump of a hang.
#pragma once

#include <span>
#include <string>

#include "heddle/ir/executor/executor.h"

namespace heddle {

// The step record's host part of a program, or null when it has none.
const StepHost* step_host(const Program& program, const Memory& memory);

// True when wait `i` of the instruction cannot pass yet in step `epoch`.
inline bool blocked_by(const Instruction& instruction, int i, u32 epoch, std::span<const u32> counters) {
  const Wait& wait = instruction.waits[i];
  return wait.counter != kNoCounter &&
         !reached(counters[wait.counter], wanted_count(wait.target, epoch, instruction.waits_previous(i)));
}

struct BlockedWorker {
  u32 worker;
  size_t next;  // index of the instruction that the worker has reached
  u32 epoch;
};

// One line per worker: its instruction, the graph node, the counter's value, the value it waits for, and the
// workers that should have signalled it.
std::string dump_blocked(const Program& program, std::span<const BlockedWorker> blocked,
                         std::span<const u32> counters);

}  // namespace heddle
