// Order: runs the program followed by itself, as far as its waits allow, and keeps for each worker what
// it knows to be done. It finds cycles and counters used again too early, and shows each
// access to Accesses.
#pragma once

#include "heddle/ir/check_access.h"
#include "heddle/ir/check_edges.h"

namespace heddle::proof {

// Adds kDeadlock, kRace, kNotWritten, kLiveReuse, and kDoesNotFit when clocks would take too much memory. Returns what it
// has done.
CheckWork check_order(const Form& form, const Edges& edges, const MemoryMap& map, Faults& faults);

}  // namespace heddle::proof
