// The proof that a program can neither deadlock nor race on the workers it is made for. It reads the packed
// program, before its first launch, and treats the program as if it ran twice in a row.
//
// The check keeps a vector clock for each worker, carried along edges and along the order of each stream. It
// proves:
//   1. every counter is waited for in full, only by waits of a kind that its producers' signals allow;
//   2. waits and stream order have no cycle: a run of the program comes to its end;
//   3. RAW, WAW and WAR conflicts, by byte interval, are ordered;
//   4. the tiles of each call cover it, each element once; every byte of every activation that is read, and
//      of every output, has been written in its step;
//   5. buffers that share arena bytes are not live together; the next step signals a counter only after all
//      signals of this step;
//   6. pages written in a step are visible to the tiles that read them in the next step;
//   7. regions lie inside their buffers; only the home touches resident rows and weight panels;
//   8. the workers and their on-chip memory fit the topology.
#pragma once

#include <string>
#include <vector>

#include "heddle/ir/program.h"

namespace heddle {

enum class FaultKind : u8 {
  kMalformed,   // an index, size, opcode or kind that is not valid
  kWaitInPart,  // a wait whose target is not the counter's total
  kBadEdge,     // a kind of edge that does not fit its producers and waiter
  kDeadlock,    // waits and stream order have a cycle, or a counter never fills
  kRace,        // two accesses to the same bytes without an order
  // bytes that are read or handed out, but that no tile of this step writes; a tile that no worker computes
  kNotWritten,
  kComputedTwice,  // two instructions compute the same part of a call
  kOutOfBounds,    // a region outside its buffer
  kLiveReuse,      // memory reused while live
  kResidency,      // a worker touches a row or panel whose home is another worker
  kDoesNotFit,     // workers or on-chip memory
};

const char* name(FaultKind kind);

struct Fault {
  FaultKind kind = FaultKind::kMalformed;
  std::string message;  // names both instructions, their nodes, the buffer and the bytes
};

// The work of a proof in counts, so that its size does not depend on the machine or its load.
struct CheckWork {
  u64 clocks = 0;  // vector clocks joined or compared; each has one entry per worker
  u64 cells = 0;   // memory cells, and readers of cells, that were examined
};

struct CheckReport {
  std::vector<Fault> faults;  // the first few; empty: proved
  size_t instructions = 0;    // instructions of one step
  size_t waits = 0;
  CheckWork work;
  double milliseconds = 0;
  bool ok() const { return faults.empty(); }
};

CheckReport check(const Program& program);
// Throws Error(kInternal) with the first fault.
CheckReport check_or_throw(const Program& program);

}  // namespace heddle
