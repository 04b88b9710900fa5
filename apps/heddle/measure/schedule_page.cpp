#include "apps/heddle/measure/schedule_page.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "heddle/trace/page.h"

namespace heddle {

// The second step, which begins with full rings, as a timeline: each worker on a unit of its own. Workers may begin it
// before the first step ends, and that time belongs to the first.
Timeline timeline_of(const PlannedSchedule& schedule, i32 rows) {
  Trace trace = schedule.prediction.trace;
  for (TraceLane& lane : trace.lanes) {
    lane.unit = lane.worker;
    std::erase_if(lane.events, [](const TraceEvent& event) { return event.epoch != 2; });
    for (TraceEvent& event : lane.events)
      for (u64* time : {&event.fetched, &event.ready, &event.computed, &event.done})
        *time = std::max(*time, u64(schedule.prediction.begin));
  }
  return make_timeline(
      schedule.program, std::move(trace),
      {.executor = schedule.policy + ", predicted", .rows = rows, .bodies = schedule.bodies});
}

std::string schedule_page(const std::string& title, std::span<const PlannedSchedule> schedules, i32 rows) {
  std::vector<Timeline> timelines;
  for (const PlannedSchedule& schedule : schedules) timelines.push_back(timeline_of(schedule, rows));
  return timelines_page(title, timelines);
}

}  // namespace heddle
