#include "heddle/schedule/schedule.h"

#include <algorithm>
#include <string>

#include "heddle/base/error.h"

namespace heddle {

const Scheduler& get_scheduler(std::string_view name) {
  std::string known;
  for (const Scheduler* scheduler : all_schedulers()) {
    if (name == scheduler->name) return *scheduler;
    known += std::string(known.empty() ? "" : ", ") + scheduler->name;
  }
  fail(ErrorCode::kInvalidArgument, "[scheduler] {} is not one; known are {}", name, known);
}

std::vector<u32> node_levels(const ScheduleInput& input) {
  std::vector<u32> levels(input.after.size(), 0);
  for (size_t n = 0; n < levels.size(); ++n)
    for (u32 before : input.after[n]) levels[n] = std::max(levels[n], levels[before] + 1);
  return levels;
}

}  // namespace heddle
