// A schedule orders the tiles of a graph on workers. Homes are given: a policy chooses only the order, and
// the worker of a tile without a home. A policy is one file of this folder, x.cpp with `const
// Scheduler& x::scheduler()`, and is found by its name. Policies depend only on ir/. Tile costs (ir/program/cost.h)
// guide a policy; no result depends on them.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/types.h"
#include "heddle/ir/tensor.h"

namespace heddle {

constexpr i32 kNoHome = -1;

struct ScheduleTile {
  u32 node = 0;
  i32 home = kNoHome;  // the worker that must run it
  double cost = 0;     // nanoseconds
  bool memory_bound = false;
  TileCoord at = {};
};

// Tiles of a node are contiguous. Nodes are in an order that respects `after`.
struct ScheduleInput {
  u32 workers = 1;
  double message = 0;  // nanoseconds from the end of a tile until other workers know of it
  std::vector<ScheduleTile> tiles;
  std::vector<std::vector<u32>> after;  // for each node: the nodes that it must follow, for any hazard
  std::vector<u32> op;                  // for each node: equal numbers are equal ops
  std::vector<std::string> name;        // for each node
  std::vector<std::string> op_name;     // by number of op
};

struct Schedule {
  std::vector<std::vector<u32>> workers;  // tile indices, in order
};

// A policy of the caller, such as one written in Python.
using OwnPolicy = std::function<Schedule(const ScheduleInput& input)>;

struct Scheduler {
  const char* name = "";
  const char* doc = "";
  Schedule (*run)(const ScheduleInput& input) = nullptr;
};

std::span<const Scheduler* const> all_schedulers();
const Scheduler& get_scheduler(std::string_view name);  // throws Error

// Throws Error(kInvalidArgument) unless each tile is given once, to its home where it has one. `policy` is named.
// find_edges (engine/lower.h) sees whether the orders can run.
void require_complete(const ScheduleInput& input, const Schedule& schedule, std::string_view policy);

// Helpers that policies share. A schedule cannot deadlock if all its workers follow one common order of the
// tiles in which every tile comes after those it needs.

// Longest path from a source, and to a sink, in nodes.
std::vector<u32> node_levels(const ScheduleInput& input);
std::vector<u32> node_depths(const ScheduleInput& input);

// Sorts all tiles by the rank of their nodes; equal ranks keep their order.
std::vector<u32> tiles_by_rank(const ScheduleInput& input, std::span<const u32> rank);
// Sorts tiles [begin, end) by falling cost.
void sort_by_cost(const ScheduleInput& input, std::span<u32> tiles);

// Gives tiles, in this order, to their homes. `turn(k)` is the worker of the k-th tile without a home.
template <class Turn>
Schedule deal(const ScheduleInput& input, std::span<const u32> order, Turn turn) {
  Schedule schedule;
  schedule.workers.resize(input.workers);
  u32 k = 0;
  for (u32 t : order) {
    const i32 home = input.tiles[t].home;
    schedule.workers[home != kNoHome ? u32(home) : turn(k++)].push_back(t);
  }
  return schedule;
}

// The work that each worker has been given.
class Loads {
 public:
  explicit Loads(u32 workers) : load_(workers) {}
  void clear() { load_.assign(load_.size(), 0); }
  void add(u32 worker, double cost) { load_[worker] += cost; }
  // The first worker of [begin, end) with the least work.
  u32 least(u32 begin, u32 end) const;

 private:
  std::vector<double> load_;
};

}  // namespace heddle
