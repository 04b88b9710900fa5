// Splits workers into two pools: one for tiles bound by memory and one for tiles bound by arithmetic, sized
// by the work of each kind. Tiles without a home go level by level to the least loaded worker of their pool.
#include <algorithm>
#include <cmath>

#include "heddle/schedule/schedule.h"

namespace heddle::pool {
namespace {

// The first workers, up to this number, form the memory pool. If there is only one kind of work, its pool has
// all workers.
u32 workers_of_memory(const ScheduleInput& input) {
  double memory = 0, all = 0;
  for (const ScheduleTile& tile : input.tiles) {
    if (tile.home != kNoHome) continue;
    all += tile.cost;
    if (tile.memory_bound) memory += tile.cost;
  }
  if (input.workers < 2 || memory == 0 || memory == all) return input.workers;
  return std::clamp(u32(std::lround(input.workers * memory / all)), 1u, input.workers - 1);
}

Schedule run(const ScheduleInput& input) {
  const u32 border = workers_of_memory(input);
  Schedule schedule;
  schedule.workers.resize(input.workers);
  Loads loads(input.workers);
  for (u32 t : tiles_by_rank(input, node_levels(input))) {
    const ScheduleTile& tile = input.tiles[t];
    const bool second = !tile.memory_bound && border < input.workers;
    const u32 worker = tile.home != kNoHome ? u32(tile.home)
                       : second             ? loads.least(border, input.workers)
                                            : loads.least(0, border);
    loads.add(worker, tile.cost);
    schedule.workers[worker].push_back(t);
  }
  return schedule;
}

}  // namespace

const Scheduler& scheduler() {
  static const Scheduler scheduler = {
      "pool", "level by level; free tiles bound by memory and by arithmetic to workers of their own", run};
  return scheduler;
}

}  // namespace heddle::pool
