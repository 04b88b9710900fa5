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

#include "heddle/ir/check/report.h"
#include "heddle/ir/program/program.h"

namespace heddle {

CheckReport check(const Program& program);
// Throws Error(kInternal) with the first fault.
CheckReport check_or_throw(const Program& program);

}  // namespace heddle
