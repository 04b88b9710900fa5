#include <algorithm>

#include "heddle/base/error.h"
#include "heddle/engine/lower.h"

namespace heddle {
namespace {

// For each worker, up to which of its tiles something is known; the second step counts on after the first.
using Clock = std::vector<u32>;

void join(Clock& into, const Clock& other) {
  for (size_t w = 0; w < into.size(); ++w) into[w] = std::max(into[w], other[w]);
}

bool covers(const Clock& known, const Clock& needed) {
  u32 beyond = 0;
  for (size_t w = 0; w < known.size(); ++w) beyond |= u32(needed[w] > known[w]);
  return beyond == 0;
}

// What is known to be complete: *done*, and of these *visible* through memory.
struct Knowledge {
  Clock done, visible;
  explicit Knowledge(size_t workers) : done(workers), visible(workers) {}
  void merge(const Knowledge& other, bool visibly) {
    join(done, other.done);
    if (visibly) join(visible, other.visible);
  }
};

// Walks two steps of the schedule in a legal order and gives each tile the waits that it still needs.
class Walker {
 public:
  Walker(const Tiles& tiles, const Hazards& hazards, const Schedule& schedule)
      : tiles_(tiles),
        hazards_(hazards),
        schedule_(schedule),
        groups_(tiles.of_group.size()),
        waits_(tiles.all.size()),
        of_worker_(schedule.workers.size(), Knowledge(schedule.workers.size())),
        of_group_(2 * groups_, Knowledge(schedule.workers.size())),
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
      if (next[w] < schedule_.workers[w].size())
        fail(ErrorCode::kInternal,
             "[schedule] worker {} stands at tile {} of {}, whose inputs come later in a stream", w, next[w],
             schedule_.workers[w].size());
  }

  // `at`: the tile's place in the worker's clock.
  void run_tile(size_t worker, u32 tile, u32 at) {
    Knowledge& known = of_worker_[worker];
    const u32 group = tiles_.all[tile].group;
    // Latest first, since a late group often implies the earlier ones.
    for (const Need& need : hazards_.of(tile, group)) {
      if (need.previous && step_ == 0) continue;
      const size_t of = id(need.group, need.previous);
      const bool tagged = need.kind == NeedKind::kTagged;
      const bool is_known =
          covers(need.kind == NeedKind::kDone ? known.done : known.visible, tiles_of_group_[of]);
      if (is_known && !made_for_itself(need, worker)) continue;
      const EdgeKind kind = tagged ? EdgeKind::kTagged : EdgeKind::kCounted;
      add_wait(tile, {need.group, kind, need.previous});
      known.merge(of_group_[of], !tagged);
    }
    const size_t own = id(group, false);
    known.done[worker] = known.visible[worker] = tiles_of_group_[own][worker] = at;
    of_group_[own].merge(known, true);
    --left_[own];
  }

  // Stream order would do; the wait lets an executor run neighbours of a stream side by side.
  bool made_for_itself(const Need& need, size_t worker) const {
    return !need.previous && tiles_.group_home[need.group] == i32(worker);
  }

  void add_wait(u32 tile, EdgeWait wait) {
    for (const EdgeWait& other : waits_[tile])
      if (other.group == wait.group && other.kind == wait.kind && other.previous == wait.previous) return;
    waits_[tile].push_back(wait);
  }

  const Tiles& tiles_;
  const Hazards& hazards_;
  const Schedule& schedule_;
  const size_t groups_;
  std::vector<std::vector<EdgeWait>> waits_;
  std::vector<Knowledge> of_worker_, of_group_;
  std::vector<Clock> tiles_of_group_;  // the last tile that each worker has of a group
  std::vector<size_t> left_;
  int step_ = 0;
};

// Where the tiles of each group run: one worker, one cluster, or neither.
struct Span {
  i32 worker = -1, cluster = -1;  // -2: several
  void add(i32 w, i32 c) {
    worker = worker == -1 || worker == w ? w : -2;
    cluster = cluster == -1 || cluster == c ? c : -2;
  }
};

}  // namespace

Edges find_edges(const Graph&, const Tiles& tiles, const Hazards& hazards, const Schedule& schedule,
                 const Topology& topology) {
  Edges edges;
  const size_t groups = tiles.of_group.size();
  edges.waits = Walker(tiles, hazards, schedule).run();
  edges.waited.assign(groups, false);
  edges.signal.assign(groups, EdgeKind::kTagged);
  std::vector<Span> producers(groups), ends(groups);
  std::vector<i32> worker_of(tiles.all.size());
  for (size_t w = 0; w < schedule.workers.size(); ++w)
    for (u32 t : schedule.workers[w]) {
      worker_of[t] = i32(w);
      producers[tiles.all[t].group].add(i32(w), topology.cluster_of(i32(w)));
    }
  ends = producers;
  for (u32 t = 0; t < tiles.all.size(); ++t)
    for (const EdgeWait& wait : edges.waits[t])
      if (wait.kind != EdgeKind::kTagged)
        ends[wait.group].add(worker_of[t], topology.cluster_of(worker_of[t]));
  // The kind of a group's plain edges: the nearest that reaches all of its waiters.
  for (u32 t = 0; t < tiles.all.size(); ++t)
    for (EdgeWait& wait : edges.waits[t]) {
      edges.waited[wait.group] = true;
      if (wait.kind == EdgeKind::kTagged) continue;
      const Span& span = ends[wait.group];
      wait.kind = span.worker >= 0                            ? EdgeKind::kInSm
                  : topology.cluster > 1 && span.cluster >= 0 ? EdgeKind::kCluster
                                                              : EdgeKind::kCounted;
      edges.signal[wait.group] = wait.kind;
    }
  return edges;
}

}  // namespace heddle
