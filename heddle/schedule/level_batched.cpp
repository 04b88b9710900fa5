// All tiles of a level (longest path from a source) before those of the next; a tile without a home goes to
// the worker with the least work in its level.
#include <algorithm>
#include <numeric>

#include "heddle/schedule/schedule.h"

namespace heddle {
namespace {

Schedule run(const ScheduleInput& input) {
  const std::vector<u32> levels = node_levels(input);
  std::vector<u32> order(input.tiles.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](u32 a, u32 b) { return levels[input.tiles[a].node] < levels[input.tiles[b].node]; });
  Schedule schedule;
  schedule.workers.resize(input.workers);
  std::vector<double> load(input.workers);
  for (size_t begin = 0; begin < order.size();) {
    const u32 level = levels[input.tiles[order[begin]].node];
    size_t end = begin;
    while (end < order.size() && levels[input.tiles[order[end]].node] == level) ++end;
    std::fill(load.begin(), load.end(), 0.0);
    for (size_t i = begin; i < end; ++i) {
      const ScheduleTile& tile = input.tiles[order[i]];
      if (tile.home != kNoHome) load[size_t(tile.home)] += tile.cost;
    }
    for (size_t i = begin; i < end; ++i) {
      const ScheduleTile& tile = input.tiles[order[i]];
      size_t worker = size_t(tile.home);
      if (tile.home == kNoHome) {
        worker = size_t(std::min_element(load.begin(), load.end()) - load.begin());
        load[worker] += tile.cost;
      }
      schedule.workers[worker].push_back(order[i]);
    }
    begin = end;
  }
  return schedule;
}

}  // namespace

const Scheduler& level_batched_scheduler() {
  static const Scheduler scheduler = {"level_batched",
                                      "level by level; free tiles to the least loaded worker", run};
  return scheduler;
}

}  // namespace heddle
