// A timeline as a .nanotrace. An instruction is up to three events of its worker's track: "wait" (for its producers),
// one in the format of its op with what it did (index in the stream, step, nanoseconds without weights), and "publish".
// A tile without work is of the format
// "no work". What version 1 has no place for stands after the last track: calls, instructions, and what each moved.
#pragma once

#include "heddle/trace/nanotrace.h"
#include "heddle/trace/timeline.h"

namespace heddle {

// Throws Error(kUnsupported) where the run was longer than 32 bits of nanoseconds.
Nanotrace to_nanotrace(const Timeline& timeline);
// Throws Error(kIo) where the table does not fit the events. Without a table, each track is a worker.
Timeline from_nanotrace(const Nanotrace& trace, const std::string& where);

}  // namespace heddle
