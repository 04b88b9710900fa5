// Orders tiles by their distance from the end, the farthest first, so that tiles whose results are needed
// late come late. Tiles without a home go to the workers in turn.
#include <algorithm>

#include "heddle/schedule/schedule.h"

namespace heddle::backward {
namespace {

Schedule run(const ScheduleInput& input) {
  std::vector<u32> rank = node_depths(input);
  const u32 deepest = rank.empty() ? 0 : *std::max_element(rank.begin(), rank.end());
  for (u32& depth : rank) depth = deepest - depth;
  return deal(input, tiles_by_rank(input, rank), [&](u32 k) { return k % input.workers; });
}

}  // namespace

const Scheduler& scheduler() {
  static const Scheduler scheduler = {"backward", "farthest from the end first; free tiles round the workers",
                                      run};
  return scheduler;
}

}  // namespace heddle::backward
