// Puts the clock of one unit of a device on the clock that all units share. Units do not tick alike: on an H200, the
// clocks of a group of multiprocessors gain a microsecond on others and lose it again within a few steps. Two
// readings, at the ends of a run, are therefore not enough.
#pragma once

#include <span>
#include <vector>

#include "heddle/base/types.h"

namespace heddle::cuda {

class UnitClock {
 public:
  // A reading of both clocks at one moment. The shared clock moves in steps: it says when its last step was.
  struct Reading {
    u64 ticks = 0, nanoseconds = 0;
  };
  // Takes one or more readings, in order of ticks. With many, it corrects what is off by less than a step of the
  // shared clock, from the readings soonest after a step.
  explicit UnitClock(std::span<const Reading> readings);

  // Converts ticks to nanoseconds of the shared clock. Never decreases.
  u64 at(u64 ticks) const;
  // Returns how many nanoseconds so many ticks take on average.
  double span(u64 ticks) const { return double(ticks) * rate_; }

 private:
  // A place at which the shared clock leads the average by `lead` nanoseconds.
  struct Knot {
    u64 ticks;
    double lead;
  };
  double average(u64 ticks) const { return double(i64(ticks - first_.ticks)) * rate_; }
  double lead(u64 ticks) const;

  Reading first_;
  double rate_ = 0;  // nanoseconds per tick
  std::vector<Knot> knots_;
};

}  // namespace heddle::cuda
