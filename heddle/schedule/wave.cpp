// Schedules in waves: the tiles of one op in one level together, the most expensive first. A tile without a
// home goes to the worker with the least work so far.
#include <algorithm>

#include "heddle/schedule/schedule.h"

namespace heddle::wave {
namespace {

Schedule run(const ScheduleInput& input) {
  std::vector<u32> wave = node_levels(input);  // by node: its level, then its op within the level
  const u32 ops = input.op.empty() ? 0 : *std::max_element(input.op.begin(), input.op.end());
  for (size_t n = 0; n < wave.size(); ++n) wave[n] = wave[n] * (ops + 1) + input.op[n];
  std::vector<u32> order = tiles_by_rank(input, wave);
  for (size_t begin = 0; begin < order.size();) {
    const u32 own = wave[input.tiles[order[begin]].node];
    size_t end = begin;
    while (end < order.size() && wave[input.tiles[order[end]].node] == own) ++end;
    sort_by_cost(input, std::span(order).subspan(begin, end - begin));
    begin = end;
  }
  Schedule schedule;
  schedule.workers.resize(input.workers);
  Loads loads(input.workers);
  for (u32 t : order) {
    const ScheduleTile& tile = input.tiles[t];
    const u32 worker = tile.home != kNoHome ? u32(tile.home) : loads.least(0, input.workers);
    loads.add(worker, tile.cost);
    schedule.workers[worker].push_back(t);
  }
  return schedule;
}

}  // namespace

const Scheduler& scheduler() {
  static const Scheduler scheduler = {
      "wave", "one op of a level together, dearest first; free tiles to the least loaded worker", run};
  return scheduler;
}

}  // namespace heddle::wave
