#include "heddle/schedule/schedule.h"

#include <algorithm>
#include <numeric>
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

std::vector<u32> node_depths(const ScheduleInput& input) {
  std::vector<u32> depths(input.after.size(), 0);
  for (size_t n = depths.size(); n-- > 0;)
    for (u32 before : input.after[n]) depths[before] = std::max(depths[before], depths[n] + 1);
  return depths;
}

std::vector<u32> tiles_by_rank(const ScheduleInput& input, std::span<const u32> rank) {
  std::vector<u32> order(input.tiles.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](u32 a, u32 b) { return rank[input.tiles[a].node] < rank[input.tiles[b].node]; });
  return order;
}

void sort_by_cost(const ScheduleInput& input, std::span<u32> tiles) {
  std::stable_sort(tiles.begin(), tiles.end(),
                   [&](u32 a, u32 b) { return input.tiles[a].cost > input.tiles[b].cost; });
}

u32 Loads::least(u32 begin, u32 end) const {
  return u32(std::min_element(load_.begin() + begin, load_.begin() + end) - load_.begin());
}

}  // namespace heddle
