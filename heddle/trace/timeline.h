// A traced run with everything that its readers need: which ops and calls its events belong to, which bytes
// these moved, and what they waited for. It needs neither the program nor the ops, so it can be stored as a
// file.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "heddle/ir/program/program.h"
#include "heddle/ir/trace.h"

namespace heddle {

constexpr u32 kNoCall = 0xffffffffu;

struct TimelineCall {
  u32 op = 0;             // index into Timeline::ops
  std::string node;       // the graph's node
  std::string body = {};  // what ran it (Executor::bodies); empty: the tiles of its op
};

struct TimelineInstruction {
  u32 call = kNoCall;  // kNoCall: it waits and signals, but has no work
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
  u32 unit = 0;  // the thread or multiprocessor that it ran on
  std::vector<TimelineInstruction> stream;
};

struct Timeline {
  std::string name;              // the program's name
  std::string executor;          // the executor's name
  std::vector<std::string> ops;  // chains, one for each opcode
  std::vector<TimelineCall> calls;
  std::vector<TimelineWorker> workers;
  Trace trace;

  const TimelineInstruction& at(const TraceLane& lane, const TraceEvent& event) const {
    return workers[lane.worker].stream[event.instruction];
  }
};

// Facts about a run that its program does not contain.
struct TracedRun {
  std::string executor;
  i32 rows = 0, wanted = 0;  // rows of a step, if fewer than the program's: they decide which tiles count
  i32 positions = 0;         // positions in the pages, over all sequences
  i32 capacity = 1;          // positions that the pages have room for
  std::vector<std::string> bodies = {};  // what ran each call (Executor::bodies); empty: tiles
};

// Makes a timeline. Bytes follow from the tiles' regions. A read of pages counts the positions that were
// present, and a write the rows of a step. Tables that data looks up, and the step record, count nothing.
Timeline make_timeline(const Program& program, Trace trace, const TracedRun& run);

// Says what ran the calls that have a body, for people: a line for each op and body, with the number of its calls.
std::vector<std::string> body_lines(const Timeline& timeline);

// Reads a file of write_timeline, or a .nanotrace of another program, whose events then become ops without
// costs. Throws Error(kIo) when it is neither.
Timeline read_timeline(const std::string& path);
Timeline parse_timeline(std::string_view bytes, const std::string& where);
// The file's ending decides the format: .nanotrace, .html (a page that holds the .nanotrace, and can be read
// like one), .json (chrome://tracing), .perfetto-trace or .perfetto.
void write_timeline(const Timeline& timeline, const std::string& path);
// Throws Error when the ending is none of these.
void require_timeline_path(const std::string& path);

}  // namespace heddle
