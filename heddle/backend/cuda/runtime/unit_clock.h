// The clock of one unit of a device, put on the one that all units share. Units do not tick alike: on an H200 those of a group
// of multiprocessors run ahead of others by a microsecond and back within a few steps, so that two readings, at the ends of a
// run, are not enough.
#pragma once

#include <span>
#include <vector>

#include "heddle/base/types.h"

namespace heddle::cuda {

class UnitClock {
 public:
  // Both clocks at one moment. The shared one moves in steps: it says when its last step was.
  struct Reading {
    u64 ticks = 0, nanoseconds = 0;
  };
  // In order of ticks, one or more. Many: what is off by less than a step of the shared clock is found
  // from the readings soonest after a step.
  explicit UnitClock(std::span<const Reading> readings);

  // On the shared clock, nanoseconds. Never decreases.
  u64 at(u64 ticks) const;
  // How long so many ticks are on the average, nanoseconds.
  double span(u64 ticks) const { return double(ticks) * rate_; }

 private:
  // Where the shared clock is ahead of the average by `lead` nanoseconds.
  struct Knot {
    u64 ticks;
    double lead;
  };
  double average(u64 ticks) const { return double(i64(ticks - first_.ticks)) * rate_; }
  double lead(u64 ticks) const;

  Reading first_;
  double rate_ = 0;  // nanoseconds of a tick
  std::vector<Knot> knots_;
};

}  // namespace heddle::cuda
