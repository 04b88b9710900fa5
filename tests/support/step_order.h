// The order that a program has, and the order that it must have, computed pair by pair as a second opinion
// for the check.
#pragma once

#include <vector>

#include "heddle/ir/program/program.h"

namespace heddle {

// The order of instructions in two steps, by streams and edges. It is computed as reachability in a graph,
// not with clocks as in the check.
class StepOrder {
 public:
  explicit StepOrder(const Program& program);

  size_t id(u32 worker, size_t index, u32 step = 0) const { return step * count_ + first_[worker] + index; }
  // True if a comes before b, or is b.
  bool reaches(size_t a, size_t b) const;
  // Producers in the first step.
  const std::vector<size_t>& producers(u32 counter) const { return producers_[counter]; }
  size_t in_step(size_t id, u32 step) const { return id % count_ + step * count_; }

 private:
  size_t count_ = 0;           // instructions per step
  std::vector<size_t> first_;  // first instruction of each worker
  std::vector<std::vector<size_t>> producers_, after_;
  mutable std::vector<std::vector<bool>> reached_;  // from each instruction, once it was asked for
};

std::vector<Region> regions_of(const Program& program, const Instruction& instruction);
// True if b must come after a in the same step, or in the next one, because of bytes that both touch.
bool conflict(const Program& program, const Instruction& a, const Instruction& b, bool previous);

}  // namespace heddle
