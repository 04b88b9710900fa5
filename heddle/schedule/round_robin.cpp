// Keeps tiles in graph order. Tiles without a home go to the workers in turn.
#include <numeric>

#include "heddle/schedule/schedule.h"

namespace heddle::round_robin {
namespace {

Schedule run(const ScheduleInput& input) {
  std::vector<u32> order(input.tiles.size());
  std::iota(order.begin(), order.end(), 0u);
  return deal(input, order, [&](u32 k) { return k % input.workers; });
}

}  // namespace

const Scheduler& scheduler() {
  static const Scheduler scheduler = {"round_robin", "graph order; free tiles round the workers", run};
  return scheduler;
}

}  // namespace heddle::round_robin
