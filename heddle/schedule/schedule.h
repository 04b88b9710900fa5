// A schedule orders the tiles of a graph on workers. Homes are given: a policy chooses only the order, and
// the worker of tiles without a home. A policy is one file of this folder, found by its name:
// `const Scheduler& x_scheduler()` in x.cpp. Policies see ir/ alone.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "heddle/base/types.h"

namespace heddle {

constexpr i32 kNoHome = -1;

struct ScheduleTile {
  u32 node = 0;
  i32 home = kNoHome;  // the worker that must run it
  double cost = 0;     // arbitrary units, comparable between tiles
};

// Tiles of a node are contiguous; nodes are in an order that respects `after`.
struct ScheduleInput {
  u32 workers = 1;
  std::vector<ScheduleTile> tiles;
  std::vector<std::vector<u32>> after;  // for each node: the nodes it must follow, every hazard included
};

struct Schedule {
  std::vector<std::vector<u32>> workers;  // tile indices, in order
};

struct Scheduler {
  const char* name = "";
  const char* doc = "";
  Schedule (*run)(const ScheduleInput& input) = nullptr;
};

std::span<const Scheduler* const> all_schedulers();
const Scheduler& get_scheduler(std::string_view name);  // throws Error

// Longest path from a source, in nodes. A schedule that runs each worker's tiles by level cannot deadlock.
std::vector<u32> node_levels(const ScheduleInput& input);

}  // namespace heddle
