// Edges: each counter has one group of producers, and waits for it are for its full count and of a kind that
// its producers' signals allow.
#pragma once

#include <span>
#include <vector>

#include "heddle/ir/check/form.h"

namespace heddle::proof {

// Producers of every counter, over all workers.
struct Edges {
  std::vector<u32> begin;                       // by counter: first index into producers; one more at the end
  std::vector<u32> producers;                   // instructions
  std::vector<u32> waits_this, waits_previous;  // by counter: number of waits of each kind

  std::span<const u32> producers_of(u32 counter) const {
    return std::span(producers).subspan(begin[counter], begin[counter + 1] - begin[counter]);
  }
};

Edges make_edges(const Form& form);
// Adds kWaitInPart, kBadEdge and (for a counter that never fills) kDeadlock.
void check_edges(const Form& form, const Edges& edges, Faults& faults);

}  // namespace heddle::proof
