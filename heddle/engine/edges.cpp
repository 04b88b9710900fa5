#include <algorithm>

#include "heddle/base/error.h"
#include "heddle/engine/lower.h"

namespace heddle {
namespace {

// For each worker, the number of its tiles that are known to be done. The second step continues the count of
// the first.
using Clock = std::vector<u32>;

void join(Clock& into, const Clock& other) {
  for (size_t w = 0; w < into.size(); ++w) into[w] = std::max(into[w], other[w]);
}

bool covers(const Clock& known, const Clock& needed) {
  u32 beyond = 0;
  for (size_t w = 0; w < known.size(); ++w) beyond |= u32(needed[w] > known[w]);
  return beyond == 0;
}

// Walks two steps of the schedule in a legal order and gives each tile the waits that it still needs. It uses
// the same vector clocks as the proof (ir/check/order.h), so every wait is needed.
class Walker {
 public:
  Walker(const Tiles& tiles, const Hazards& hazards, const Schedule& schedule)
      : tiles_(tiles),
        hazards_(hazards),
        schedule_(schedule),
        groups_(tiles.of_group.size()),
        waits_(tiles.all.size()),
        of_worker_(schedule.workers.size(), Clock(schedule.workers.size())),
        of_group_(2 * groups_, Clock(schedule.workers.size())),
        tiles_of_group_(2 * groups_, Clock(schedule.workers.size())),
        left_(2 * groups_) {
    for (size_t g = 0; g < 2 * groups_; ++g) left_[g] = tiles_.of_group[g % groups_].size();
  }

  std::vector<std::vector<EdgeWait>> run() {
    for (step_ = 0; step_ < 2; ++step_) walk();
    return std::move(waits_);
  }

 private:
  size_t id(u32 group, bool previous) const {
    return size_t(group) + (step_ == 1 && !previous ? groups_ : 0);
  }

  bool ready(u32 tile) const {
    for (const Need& need : hazards_.of(tile, tiles_.all[tile].group))
      if (!need.previous && left_[id(need.group, false)] > 0) return false;
    return true;
  }

  void walk() {
    std::vector<size_t> next(schedule_.workers.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t w = 0; w < next.size(); ++w)
        for (; next[w] < schedule_.workers[w].size() && ready(schedule_.workers[w][next[w]]); ++next[w]) {
          const size_t at = size_t(step_) * schedule_.workers[w].size() + next[w] + 1;
          run_tile(w, schedule_.workers[w][next[w]], u32(at));
          moved = true;
        }
    }
    for (size_t w = 0; w < next.size(); ++w)
      if (next[w] < schedule_.workers[w].size()) say_why_it_stops(next, w);
  }

  [[noreturn]] void say_why_it_stops(const std::vector<size_t>& next, size_t worker) const {
    const u32 tile = schedule_.workers[worker][next[worker]];
    for (const Need& need : hazards_.of(tile, tiles_.all[tile].group)) {
      if (need.previous || left_[id(need.group, false)] == 0) continue;
      for (size_t w = 0; w < next.size(); ++w)
        for (size_t at = next[w]; at < schedule_.workers[w].size(); ++at) {
          const u32 needed = schedule_.workers[w][at];
          if (tiles_.all[needed].group == need.group)
            fail(ErrorCode::kInvalidArgument,
                 "[scheduler] the order deadlocks: worker {} stops at tile {} (of call {}), which needs tile "
                 "{} (of "
                 "call {}); worker {} never reaches that one, because it stops at tile {} (of call {})",
                 worker, tile, tiles_.all[tile].node, needed, tiles_.all[needed].node, w,
                 schedule_.workers[w][next[w]], tiles_.all[schedule_.workers[w][next[w]]].node);
        }
    }
    fail(ErrorCode::kInternal, "[schedule] worker {} stops at tile {}, which needs nothing", worker, tile);
  }

  // `at`: the tile's position in its worker's clock.
  void run_tile(size_t worker, u32 tile, u32 at) {
    Clock& known = of_worker_[worker];
    const u32 group = tiles_.all[tile].group;
    // Latest groups first, because a late group often implies the earlier ones.
    for (const Need& need : hazards_.of(tile, group)) {
      if (need.previous && step_ == 0) continue;
      const size_t of = id(need.group, need.previous);
      if (covers(known, tiles_of_group_[of]) && !made_for_itself(need, worker)) continue;
      add_wait(tile, {need.group, need.previous});
      join(known, of_group_[of]);
    }
    const size_t own = id(group, false);
    known[worker] = tiles_of_group_[own][worker] = at;
    join(of_group_[own], known);
    --left_[own];
  }

  // The order of the stream would be enough. The wait lets an executor run neighbours of a stream in
  // parallel.
  bool made_for_itself(const Need& need, size_t worker) const {
    return !need.previous && tiles_.group_home[need.group] == i32(worker);
  }

  void add_wait(u32 tile, EdgeWait wait) {
    if (std::ranges::find(waits_[tile], wait) == waits_[tile].end()) waits_[tile].push_back(wait);
  }

  const Tiles& tiles_;
  const Hazards& hazards_;
  const Schedule& schedule_;
  const size_t groups_;
  std::vector<std::vector<EdgeWait>> waits_;
  std::vector<Clock> of_worker_, of_group_;  // events that are known to be complete
  std::vector<Clock> tiles_of_group_;        // the last tile of a group on each worker
  std::vector<size_t> left_;
  int step_ = 0;
};

// The one worker of a group's tiles and waiters; kNoWorker before the first one, kSeveral if they differ.
constexpr i32 kNoWorker = -1, kSeveral = -2;
void add(i32& common, i32 worker) {
  common = common == kNoWorker || common == worker ? worker : kSeveral;
}

}  // namespace

Edges find_edges(const Tiles& tiles, const Hazards& hazards, const Schedule& schedule) {
  Edges edges;
  const size_t groups = tiles.of_group.size();
  edges.waits = Walker(tiles, hazards, schedule).run();
  edges.waited.assign(groups, false);
  std::vector<i32> common(groups, kNoWorker), worker_of(tiles.all.size());
  for (size_t w = 0; w < schedule.workers.size(); ++w)
    for (u32 t : schedule.workers[w]) {
      worker_of[t] = i32(w);
      add(common[tiles.all[t].group], i32(w));
    }
  for (u32 t = 0; t < tiles.all.size(); ++t)
    for (const EdgeWait& wait : edges.waits[t]) {
      edges.waited[wait.group] = true;
      add(common[wait.group], worker_of[t]);
    }
  for (const i32 worker : common) edges.kind.push_back(worker >= 0 ? EdgeKind::kInSm : EdgeKind::kCounted);
  return edges;
}

}  // namespace heddle
