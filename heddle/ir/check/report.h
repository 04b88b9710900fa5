// The report of the check: the faults of a program, and how much work it took to find them.
#pragma once

#include <string>
#include <vector>

#include "heddle/base/types.h"

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

}  // namespace heddle
