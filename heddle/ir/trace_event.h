// One event: what one role of a worker did with one instruction, and when. Host and device include it: no
// standard headers.
#pragma once

#include "heddle/base/types.h"

namespace heddle {

// All times of a lane come from one clock: ticks of its multiprocessor on a device, nanoseconds in a Trace.
struct TraceEvent {
  u64 fetched = 0;                 // the instruction was taken
  u64 ready = 0;                   // its waits were over
  u64 computed = 0;                // its body had ended
  u64 done = 0;                    // it was signalled
  u64 starved = 0;                 // time between ready and computed that was spent waiting for weights
  u32 instruction = 0, epoch = 0;  // index in the worker's stream; number of the step
  u32 dead = 0;                    // 1: its tile had no work in this step
  u32 reserved = 0;
};

enum class TraceRole : u32 {
  kConsumers,
  kLoader
};  // a loader is ready when it may load, done when it has issued the loads
constexpr u32 kTraceRoles = 2;

}  // namespace heddle
