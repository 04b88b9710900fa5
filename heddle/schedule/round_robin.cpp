// Tiles in graph order; those without a home go round the workers.
#include "heddle/schedule/schedule.h"

namespace heddle {
namespace {

Schedule run(const ScheduleInput& input) {
  Schedule schedule;
  schedule.workers.resize(input.workers);
  u32 next = 0;
  for (u32 t = 0; t < input.tiles.size(); ++t) {
    const i32 home = input.tiles[t].home;
    schedule.workers[home != kNoHome ? u32(home) : next++ % input.workers].push_back(t);
  }
  return schedule;
}

}  // namespace

const Scheduler& round_robin_scheduler() {
  static const Scheduler scheduler = {"round_robin", "graph order; free tiles round the workers", run};
  return scheduler;
}

}  // namespace heddle
