// What comes before what in a program, and what must: worked out pair by pair, as a second opinion for the check.
#pragma once

#include <vector>

#include "heddle/ir/program.h"

namespace heddle {

// Which instructions come before which, in two steps, by streams and edges: worked out as reachability in a graph, not
// with clocks as the check does.
class StepOrder {
 public:
  explicit StepOrder(const Program& program);

  size_t id(u32 worker, size_t index, u32 step = 0) const { return step * count_ + first_[worker] + index; }
  // a comes before b, or is it.
  bool reaches(size_t a, size_t b) const;
  // Of the first step.
  const std::vector<size_t>& producers(u32 counter) const { return producers_[counter]; }
  size_t in_step(size_t id, u32 step) const { return id % count_ + step * count_; }

 private:
  size_t count_ = 0;           // instructions of a step
  std::vector<size_t> first_;  // of each worker
  std::vector<std::vector<size_t>> producers_, after_;
  mutable std::vector<std::vector<bool>> reached_;  // from each instruction, once it was asked for
};

std::vector<Region> regions_of(const Program& program, const Instruction& instruction);
// Whether b, in a step, must come after a of that step or of the one before: by the bytes that both touch.
bool conflict(const Program& program, const Instruction& a, const Instruction& b, bool previous);

}  // namespace heddle
