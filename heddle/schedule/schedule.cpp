#include "heddle/schedule/schedule.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/ranges.h>

#include "heddle/base/error.h"
#include "heddle/base/near_names.h"

namespace heddle {

const Scheduler& get_scheduler(std::string_view name) {
  std::vector<std::string> known;
  for (const Scheduler* scheduler : all_schedulers()) {
    if (name == scheduler->name) return *scheduler;
    known.emplace_back(scheduler->name);
  }
  fail(ErrorCode::kInvalidArgument, "[scheduler] there is none named '{}'; there are {}{}", name,
       fmt::join(known, ", "), did_you_mean(name, known));
}

void require_complete(const ScheduleInput& input, const Schedule& schedule, std::string_view policy) {
  const auto must = [&](bool ok, auto&& why) {
    if (!ok) fail(ErrorCode::kInvalidArgument, "[scheduler] {} {}", policy, why());
  };
  const auto text = [&](u32 t) {
    return fmt::format("tile {} (of call {})", t, input.name.at(input.tiles[t].node));
  };
  must(schedule.workers.size() == input.workers, [&] {
    return fmt::format("makes streams for {} workers; must make one for each of {}", schedule.workers.size(),
                       input.workers);
  });
  std::vector<i32> worker_of(input.tiles.size(), kNoHome);
  for (size_t w = 0; w < schedule.workers.size(); ++w)
    for (const u32 t : schedule.workers[w]) {
      must(t < input.tiles.size(), [&] {
        return fmt::format("gives worker {} the tile {}; tiles are 0 to {}", w, t,
                           i64(input.tiles.size()) - 1);
      });
      must(worker_of[t] == kNoHome, [&] {
        return fmt::format("gives {} to worker {} and again to worker {}; must give it once", text(t),
                           worker_of[t], w);
      });
      const i32 home = input.tiles[t].home;
      must(home == kNoHome || home == i32(w),
           [&] { return fmt::format("gives {} to worker {}; its home is worker {}", text(t), w, home); });
      worker_of[t] = i32(w);
    }
  for (u32 t = 0; t < worker_of.size(); ++t)
    must(worker_of[t] != kNoHome,
         [&] { return fmt::format("gives {} to no worker; must give each tile once", text(t)); });
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
