// Checks the order. It runs the program twice in a row as far as waits allow, and keeps for each worker what
// it knows to be done. It finds cycles and counters that are reused too early, and shows each access to
// Accesses.
#pragma once

#include "heddle/ir/check/access.h"
#include "heddle/ir/check/edges.h"

namespace heddle::proof {

// Adds kDeadlock, kRace, kNotWritten and kLiveReuse, and kDoesNotFit when clocks would take too much memory.
// Returns how much work it did.
CheckWork check_order(const Form& form, const Edges& edges, const MemoryMap& map, Faults& faults);

}  // namespace heddle::proof
