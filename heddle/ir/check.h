// The proof, made on the packed program, that it can neither deadlock nor race on the workers it is made
// for. It runs on every program before its first launch, at every size, on the program followed by itself.
//
// What is proved, with a vector clock for each worker, carried by edges and by stream order:
//   1. every counter is waited for in full, only by waits of a kind its producers' signals allow;
//   2. waits and stream order have no cycle: a run of the program comes to its end;
//   3. RAW, WAW and WAR, by byte interval, are ordered;
//   4. the tiles of each call cover it, each element once; every byte of every activation that is read, and
//      of every output, has been written in its step;
//   5. buffers that share arena bytes are not live together;
//      a counter is not signalled in the next step before all its signals of this step;
//   6. pages written in a step are there for the tiles that read them in the next;
//   7. regions lie inside their buffers; resident rows and weight panels are touched by their home only;
//   8. the workers and their on-chip memory fit the topology.
#pragma once

#include <string>
#include <vector>

#include "heddle/ir/program.h"

namespace heddle {

enum class FaultKind : u8 {
  kMalformed,      // an index, size, opcode or kind that cannot be
  kWaitInPart,     // a wait whose target is not the counter's total
  kBadEdge,        // a kind of edge that does not fit its producers and waiter
  kDeadlock,       // waits and stream order have a cycle, or a counter never fills
  kRace,           // two accesses to the same bytes without an order
  kNotWritten,     // bytes read or handed out that nobody wrote in this step; a tile that nobody computes
  kComputedTwice,  // a part of a call that two instructions compute
  kOutOfBounds,    // a region outside its buffer
  kLiveReuse,      // memory reused while live
  kResidency,      // a row or panel touched by a worker that is not its home
  kDoesNotFit,     // workers or on-chip memory
};

const char* name(FaultKind kind);

struct Fault {
  FaultKind kind = FaultKind::kMalformed;
  std::string message;  // names both instructions, their nodes, the buffer and the bytes
};

// What a proof has done: it says how large a proof is on any machine, however busy.
struct CheckWork {
  u64 clocks = 0;  // vector clocks joined or compared, each as long as there are workers
  u64 cells = 0;   // cells of memory, and readers of them, looked at
};

struct CheckReport {
  std::vector<Fault> faults;  // the first few; empty: proved
  size_t instructions = 0;    // of one step
  size_t waits = 0;
  CheckWork work;
  double milliseconds = 0;
  bool ok() const { return faults.empty(); }
};

CheckReport check(const Program& program);
// Throws Error(kInternal) with the first fault.
CheckReport check_or_throw(const Program& program);

}  // namespace heddle
