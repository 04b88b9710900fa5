// Orders tiles by level (longest path from a source): all tiles of a level come before those of the next. A
// tile without a home goes to the worker with the least work in its level.
#include "heddle/schedule/schedule.h"

namespace heddle::level_batched {
namespace {

Schedule run(const ScheduleInput& input) {
  const std::vector<u32> levels = node_levels(input), order = tiles_by_rank(input, levels);
  Schedule schedule;
  schedule.workers.resize(input.workers);
  Loads loads(input.workers);
  for (size_t begin = 0; begin < order.size();) {
    const u32 level = levels[input.tiles[order[begin]].node];
    size_t end = begin;
    loads.clear();
    for (; end < order.size() && levels[input.tiles[order[end]].node] == level; ++end)
      if (const ScheduleTile& tile = input.tiles[order[end]]; tile.home != kNoHome)
        loads.add(u32(tile.home), tile.cost);
    for (; begin < end; ++begin) {
      const ScheduleTile& tile = input.tiles[order[begin]];
      u32 worker = u32(tile.home);
      if (tile.home == kNoHome) {
        worker = loads.least(0, input.workers);
        loads.add(worker, tile.cost);
      }
      schedule.workers[worker].push_back(order[begin]);
    }
  }
  return schedule;
}

}  // namespace

const Scheduler& scheduler() {
  static const Scheduler scheduler = {"level_batched",
                                      "level by level; free tiles to the least loaded worker", run};
  return scheduler;
}

}  // namespace heddle::level_batched
