// A traced run with all that its readers ask for: which ops and calls its events belong to, what they moved, and what
// they waited for. It needs neither the program nor the ops any more, so that it can be kept as a file.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "heddle/ir/program.h"
#include "heddle/ir/trace.h"

namespace heddle {

constexpr u32 kNoCall = 0xffffffffu;

struct TimelineCall {
  u32 op = 0;        // index into Timeline::ops
  std::string node;  // of the graph
};

struct TimelineInstruction {
  u32 call = kNoCall;  // kNoCall: it waits and signals, without work
  std::array<i32, 4> tile = {};
  u64 bytes = 0;                                                            // read and written
  double flops = 0;                                                         // as the ops declare them
  std::array<u32, kMaxWaits> waits = {kNoCounter, kNoCounter, kNoCounter};  // counters
  u8 previous = 0;  // bit i: wait i means the step before
  u32 signal = kNoCounter;

  bool waits_previous(int i) const { return (previous >> i) & 1; }
  bool operator==(const TimelineInstruction&) const = default;
};

struct TimelineWorker {
  u32 unit = 0;  // the thread or multiprocessor it ran on
  std::vector<TimelineInstruction> stream;
};

struct Timeline {
  std::string name;              // of the program
  std::string executor;          // and what ran it
  std::vector<std::string> ops;  // chains, an opcode each
  std::vector<TimelineCall> calls;
  std::vector<TimelineWorker> workers;
  Trace trace;

  const TimelineInstruction& at(const TraceLane& lane, const TraceEvent& event) const {
    return workers[lane.worker].stream[event.instruction];
  }
};

// What the program does not know of a run.
struct TracedRun {
  std::string executor;
  i32 rows = 0, wanted = 0;  // of a step, if fewer than the program's: tiles are counted by those
  i32 positions = 0;         // that the pages held, of all sequences
  i32 capacity = 1;          // positions that they have room for
};

// Bytes follow from the tiles' regions. Of pages, the positions that were there count, or the rows of a step where they
// are written; of a table that data looks up, and of the step record, nothing does.
Timeline make_timeline(const Program& program, Trace trace, const TracedRun& run);

// Reads what write_timeline wrote, or a .nanotrace of another program, whose events are then ops without costs.
// Throws Error(kIo) where it is neither.
Timeline read_timeline(const std::string& path);
Timeline parse_timeline(std::string_view bytes, const std::string& where);
// The ending says how: .nanotrace, .html (a page that holds the .nanotrace, and is read like one) or .perfetto-trace.
void write_timeline(const Timeline& timeline, const std::string& path);
// Throws Error where the ending is none of them.
void require_timeline_path(const std::string& path);

}  // namespace heddle
