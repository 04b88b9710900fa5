// List scheduling by simulation. Whenever a worker is free, it takes the ready tile with the longest path to
// the end among those that it may run. A tile is ready when everything it needs is done and the message has
// arrived.
#include <algorithm>
#include <queue>

#include "heddle/schedule/schedule.h"

namespace heddle::dag {
namespace {

class ListScheduling {
 public:
  explicit ListScheduling(const ScheduleInput& input)
      : input_(input),
        nodes_(input.after.size()),
        followers_(input.after.size()),
        own_(input.workers),
        idle_(input.workers, true) {
    schedule_.workers.resize(input.workers);
    for (u32 t = 0; t < input.tiles.size(); ++t) {
      Node& node = nodes_[input.tiles[t].node];
      if (node.tiles++ == 0) node.first = t;
      node.way = std::max(node.way, input.tiles[t].cost);
    }
    for (u32 n = 0; n < nodes_.size(); ++n) {
      nodes_[n].before = u32(input.after[n].size());
      for (u32 before : input.after[n]) followers_[before].push_back(n);
    }
    for (u32 n = u32(nodes_.size()); n-- > 0;) {
      double rest = 0;
      for (u32 follower : followers_[n]) rest = std::max(rest, input.message + nodes_[follower].way);
      nodes_[n].way += rest;
      nodes_[n].left = nodes_[n].tiles;
    }
  }

  Schedule run() {
    for (u32 n = 0; n < nodes_.size(); ++n)
      if (nodes_[n].before == 0) events_.push({0, kRelease, n});
    while (!events_.empty()) {
      const double now = events_.top().time;
      while (!events_.empty() && events_.top().time == now) {
        const Event event = events_.top();
        events_.pop();
        event.worker == kRelease ? release(event.index, now) : end(event);
      }
      for (u32 w = 0; w < input_.workers; ++w)
        if (idle_[w]) take(w, now);
    }
    return std::move(schedule_);
  }

 private:
  struct Node {
    u32 first = 0, tiles = 0;  // range of its tiles
    u32 left = 0;              // tiles that are not done
    u32 before = 0;            // nodes that it still waits for
    double way = 0;            // nanoseconds from its beginning to the end of the program
  };
  // A worker ends a tile, or the tiles of a node become ready.
  struct Event {
    double time;
    u32 worker, index;
    bool operator<(const Event& other) const { return time > other.time; }
  };
  struct Ready {
    double way;
    u32 tile;
    bool operator<(const Ready& other) const {
      return way != other.way ? way < other.way : tile > other.tile;
    }
  };
  static constexpr u32 kRelease = 0xffffffffu;

  void release(u32 n, double now) {
    const Node& node = nodes_[n];
    if (node.tiles == 0) return done(n, now);
    for (u32 t = node.first; t < node.first + node.tiles; ++t) {
      const i32 home = input_.tiles[t].home;
      (home == kNoHome ? free_ : own_[size_t(home)]).push({node.way, t});
    }
  }

  void end(const Event& event) {
    idle_[event.worker] = true;
    const u32 n = input_.tiles[event.index].node;
    if (--nodes_[n].left == 0) done(n, event.time);
  }

  void done(u32 n, double now) {
    for (u32 follower : followers_[n])
      if (--nodes_[follower].before == 0) events_.push({now + input_.message, kRelease, follower});
  }

  void take(u32 worker, double now) {
    auto* from = &own_[worker];
    if (from->empty() || (!free_.empty() && from->top() < free_.top())) from = &free_;
    if (from->empty()) return;
    const u32 tile = from->top().tile;
    from->pop();
    schedule_.workers[worker].push_back(tile);
    idle_[worker] = false;
    events_.push({now + input_.tiles[tile].cost, worker, tile});
  }

  const ScheduleInput& input_;
  std::vector<Node> nodes_;
  std::vector<std::vector<u32>> followers_;      // by node
  std::vector<std::priority_queue<Ready>> own_;  // by worker: ready tiles with this home
  std::priority_queue<Ready> free_;
  std::priority_queue<Event> events_;
  std::vector<bool> idle_;
  Schedule schedule_;
};

Schedule run(const ScheduleInput& input) {
  return ListScheduling(input).run();
}

}  // namespace

const Scheduler& scheduler() {
  static const Scheduler scheduler = {
      "dag", "list scheduling: of the ready tiles the one with the longest way to the end", run};
  return scheduler;
}

}  // namespace heddle::dag
