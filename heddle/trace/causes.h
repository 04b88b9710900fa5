// Finds why an instruction did not start earlier: which event made what it waited for, and what its unit ran
// meanwhile.
#pragma once

#include <span>
#include <vector>

#include "heddle/trace/timeline.h"

namespace heddle {

struct EventRef {
  static constexpr u32 kNone = 0xffffffffu;
  u32 lane = kNone, event = 0;  // indices
  explicit operator bool() const { return lane != kNone; }
};

class Causes {
 public:
  explicit Causes(const Timeline& timeline);

  const TraceEvent& at(EventRef ref) const { return timeline_.trace.lanes[ref.lane].events[ref.event]; }
  // The last of the producers that the event's instruction waited for; none when it waited for nothing in the
  // trace.
  EventRef producer(EventRef ref) const;
  // Nanoseconds of [begin, end) in which the unit of `lane` ran instructions.
  u64 unit_busy(u32 lane, u64 begin, u64 end) const;
  // The last event that the unit of `lane` ended before `time`.
  EventRef unit_before(u32 lane, u64 time) const;

 private:
  struct Signalled {
    u32 counter, epoch;
    EventRef by;
  };
  // The events of one unit, in order, and the time that it was busy up to each.
  struct Unit {
    std::vector<EventRef> ran;
    std::vector<u64> before;  // ns
  };
  const Unit& unit_of(u32 lane) const { return units_[unit_index_[lane]]; }
  u64 busy_until(const Unit& unit, u64 time) const;
  EventRef last_signal(u32 counter, u32 epoch) const;

  const Timeline& timeline_;
  std::vector<Signalled> signals_;  // by counter, then epoch: the last signal of each
  std::vector<Unit> units_;
  std::vector<size_t> unit_index_;  // by lane
};

// One stretch of the critical path: from the end of the previous one to the end of `by`.
struct PathStep {
  EventRef by;
  u64 begin = 0;  // ns; the event itself ran from its `ready`
};
// The critical path: a chain of instructions, first to last, that ends with the run. Each began when the one
// before it was done. Only a faster path makes the run faster.
std::vector<PathStep> critical_path(const Timeline& timeline, const Causes& causes);

}  // namespace heddle
