// A timeline as a .nanotrace. An instruction is up to three events of its worker's track: "wait" (for its
// producers), one in the format of its op with its index in the stream, its step and its nanoseconds without
// weights, and "publish". A tile without work has the format "no work". Data that version 1 has no place for
// follows the last track: calls, instructions, and the bytes that each moved.
#pragma once

#include "heddle/trace/nanotrace.h"
#include "heddle/trace/timeline.h"

namespace heddle {

// Throws Error(kUnsupported) when the run is longer than 32 bits of nanoseconds.
Nanotrace to_nanotrace(const Timeline& timeline);
// Throws Error(kIo) when the table does not fit the events. Without a table, each track becomes a worker.
Timeline from_nanotrace(const Nanotrace& trace, const std::string& where);

}  // namespace heddle
