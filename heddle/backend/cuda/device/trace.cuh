// The trace of a worker. If the run is traced, one thread of each role notes its events in ticks of the multiprocessor, and the
// readings that the host needs to put all multiprocessors on one clock.
#pragma once

#include "heddle/backend/cuda/device/params.h"
#include "heddle/kit/arch/thread.cuh"

namespace heddle::device {

// A role's next event, and how many it has written.
struct TraceNote {
  TraceEvent event;
  u32 count;
};
inline TraceNote& trace_note(TraceRole role) {
  __shared__ TraceNote notes[kTraceRoles];
  return notes[u32(role)];
}

// One thread of the role calls it.
class Tracer {
 public:
  Tracer(const TraceParams& params, TraceRole role) : params_(params), role_(role) {}

  void fetched(u32 instruction, u32 epoch) const {
    if (!on()) return;
    TraceEvent& event = note().event;
    event.instruction = instruction, event.epoch = epoch, event.starved = 0;
    event.fetched = event.ready = arch::ticks();
  }
  void ready() const {
    if (on()) note().event.ready = arch::ticks();
  }
  void computed(bool dead = false) const {
    if (!on()) return;
    TraceEvent& event = note().event;
    event.dead = dead, event.computed = arch::ticks();
  }
  void done() const {
    if (!on()) return;
    TraceNote& mine = note();
    mine.event.done = arch::ticks();
    const u32 lane = u32(role_) * gridDim.x + blockIdx.x;
    const u64 at = u64(lane) * params_.capacity + mine.count;
    if (mine.count < params_.capacity) {
      if (role_ == TraceRole::kConsumers)
        params_.marks[at] = arch::nanoseconds();  // consumers have the first lanes
      params_.events[at] = mine.event;
    }
    params_.counts[lane] = ++mine.count;
  }
  // Consumers call open() before and close() after everything else.
  void open() const {
    for (u32 role = 0; role < kTraceRoles; ++role) trace_note(TraceRole(role)).count = 0;
    if (!on()) return;
    params_.clocks[blockIdx.x].multiprocessor = arch::multiprocessor();
    read_clocks(params_.clocks[blockIdx.x].begin);
  }
  void close() const {
    if (on()) read_clocks(params_.clocks[blockIdx.x].end);
  }

 private:
  bool on() const { return params_.events != nullptr; }
  TraceNote& note() const { return trace_note(role_); }
  // The shared clock moves in steps of up to a microsecond, so it is read just after it has moved.
  static void read_clocks(TraceClocks::Point& point) {
    const u64 before = arch::nanoseconds();
    u64 now = before;
    while (now == before) now = arch::nanoseconds();
    point.ticks = arch::ticks(), point.nanoseconds = now;
  }

  const TraceParams& params_;
  TraceRole role_;
};

}  // namespace heddle::device
