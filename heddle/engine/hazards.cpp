#include <algorithm>
#include <map>
#include <span>

#include "heddle/engine/lower.h"

namespace heddle {
namespace {

// The bytes that one group touches in one space, as an interval from the first byte to the last.
struct Touch {
  u32 space;
  i64 begin, end;
  Access access;
  const Buffer* buffer;
};

constexpr u32 kArenaSpace = 0;

class Finder {
 public:
  Finder(const Graph& graph, const ArenaPlan& arena, const Tiles& tiles)
      : graph_(graph), arena_(arena), tiles_(tiles), spaces_(graph.buffers().size() + 1) {
    hazards_.needs.resize(tiles.of_group.size());
    hazards_.after.resize(graph.nodes().size());
    for (const Node& node : graph.nodes()) rules_.emplace_back(node);
  }

  Hazards run() {
    for (u32 g = 0; g < tiles_.of_group.size(); ++g) touches_.push_back(touches_of(g, tiles_.of_group[g]));
    for (step_ = 0; step_ < 2; ++step_)
      for (u32 g = 0; g < touches_.size(); ++g) visit(g, touches_[g]);
    for (auto& needs : hazards_.needs) {
      std::sort(needs.begin(), needs.end(), [](const Need& a, const Need& b) {
        return std::tuple(a.previous, a.kind, ~a.group) < std::tuple(b.previous, b.kind, ~b.group);
      });
      needs.erase(std::unique(needs.begin(), needs.end(),
                              [](const Need& a, const Need& b) {
                                return a.group == b.group && a.kind == b.kind && a.previous == b.previous;
                              }),
                  needs.end());
    }
    for (u32 g = 0; g < tiles_.of_group.size(); ++g) narrow(g);
    for (auto& after : hazards_.after) {
      std::sort(after.begin(), after.end());
      after.erase(std::unique(after.begin(), after.end()), after.end());
    }
    return std::move(hazards_);
  }

 private:
  struct Entry {
    i64 begin, end;
    u32 group;
    int step;
    u64 overwritten;  // the turn() of the node that overwrote it, or kNever
  };
  static constexpr u64 kNever = ~u64{0};
  // Equal parts of a space, so that a touch meets few entries. An entry is in each part that it has bytes of.
  struct Part {
    std::vector<Entry> writers, readers;
  };
  static constexpr i64 kParts = 32;
  struct Space {
    i64 part_bytes = 0;
    std::vector<Part> parts = {};      // none until something is recorded
    std::vector<Entry> appended = {};  // pages written in the previous step

    size_t part_of(i64 byte) const {
      return size_t(std::clamp<i64>(byte / part_bytes, 0, i64(parts.size()) - 1));
    }
    // Calls visit(part, its first byte) for the parts of these bytes; of the first one, the first byte is 0.
    template <class Visit>
    void for_each_part(i64 begin, i64 end, Visit&& visit) {
      if (parts.empty()) return;
      const size_t first = part_of(begin), last = part_of(std::max(begin, end - 1));
      for (size_t p = first; p <= last; ++p) visit(parts[p], p == first ? 0 : i64(p) * part_bytes);
    }
  };

  std::vector<Touch> touches_of(u32 group, std::span<const u32> tiles) const {
    std::vector<Touch> touches;
    std::vector<Region> regions;
    for (u32 t : tiles) {
      regions.clear();
      rules_[tiles_.group_node[group]].append(tiles_.all[t].at, regions);
      for (const Region& region : regions) add(touches, region);
    }
    return touches;
  }

  void add(std::vector<Touch>& touches, const Region& region) const {
    const Buffer& buffer = graph_.buffers()[region.buffer];
    if (is_immutable(buffer.kind)) return;
    const i64 base = arena_.offset[region.buffer];
    const u32 space = base >= 0 ? kArenaSpace : region.buffer + 1;
    const i64 begin = region.offset + std::max<i64>(base, 0), end = region.end() + std::max<i64>(base, 0);
    for (Touch& touch : touches)
      if (touch.space == space && touch.access == region.access && touch.buffer == &buffer) {
        touch.begin = std::min(touch.begin, begin);
        touch.end = std::max(touch.end, end);
        return;
      }
    touches.push_back({space, begin, end, region.access, &buffer});
  }

  // If a group needs several groups of one node (heads, row blocks, workers), each of its tiles needs only
  // those whose bytes it touches.
  void narrow(u32 group) {
    std::map<u32, int> groups_of;  // node -> how many of its groups are needed
    bool several = false;
    for (const Need& need : hazards_.needs[group])
      several |= !need.previous && ++groups_of[tiles_.group_node[need.group]] > 1;
    if (!several) return;
    for (u32 t : tiles_.of_group[group]) {
      const std::vector<Touch> touches = touches_of(group, std::span(&t, 1));
      std::vector<Need> own = hazards_.needs[group];
      std::erase_if(own, [&](const Need& need) {
        const bool one = groups_of[tiles_.group_node[need.group]] < 2;
        return !one && !conflict(touches, need.group, tiles_.all[t].home);
      });
      hazards_.needs_of_tile.emplace(t, std::move(own));
    }
  }

  bool conflict(const std::vector<Touch>& touches, u32 other, i32 home) const {
    for (const Touch& a : touches)
      for (const Touch& b : touches_[other]) {
        if (a.space != b.space || (a.access == Access::kRead && b.access == Access::kRead)) continue;
        if (a.buffer->resident && a.buffer == b.buffer ? home == tiles_.group_home[other]
                                                       : a.begin < b.end && b.begin < a.end)
          return true;
        if (a.buffer->kind == BufferKind::kPages) return true;  // data decides which bytes
      }
    return false;
  }

  // A worker's own stream orders a resident buffer. A wait repeats that order only if one worker alone made
  // the buffer.
  void need(u32 group, const Entry& entry, NeedKind kind, const Buffer& buffer) {
    // Tiles of one call do not touch each other's bytes, even if the bounds of their groups overlap.
    if (tiles_.group_node[entry.group] == tiles_.group_node[group] && entry.step == step_) return;
    const bool previous = entry.step != step_;
    const bool kept = buffer.resident && (previous || tiles_.group_home[entry.group] == kNoHome);
    if (!kept && (step_ == 0 || previous)) hazards_.needs[group].push_back({entry.group, kind, previous});
    if (step_ == 0) hazards_.after[tiles_.group_node[group]].push_back(tiles_.group_node[entry.group]);
  }

  // An entry that a node has overwritten still counts for the other groups of that node, and then no more.
  u64 turn(u32 group) const { return u64(step_) << 32 | tiles_.group_node[group]; }
  bool counts(const Entry& entry, u32 group, const Touch& touch) const {
    return entry.begin < touch.end && touch.begin < entry.end &&
           (entry.overwritten == kNever || entry.overwritten == turn(group));
  }

  void visit(u32 group, const std::vector<Touch>& touches) {
    for (const Touch& touch : touches) {
      Space& space = spaces_[touch.space];
      const Buffer& buffer = *touch.buffer;
      if (buffer.kind == BufferKind::kPages) {
        if (touch.access == Access::kRead)
          for (const Entry& entry : space.appended)
            if (entry.step != step_) need(group, entry, NeedKind::kData, buffer);
        continue;
      }
      // A worker that has the step record reads pages before its waits. So the record also carries what its
      // previous readers appended.
      const NeedKind after_reader =
          buffer.kind == BufferKind::kStepDevice ? NeedKind::kData : NeedKind::kSpace;
      space.for_each_part(touch.begin, touch.end, [&](const Part& part, i64 begin) {
        const auto meet = [&](const std::vector<Entry>& entries, NeedKind kind) {
          for (const Entry& entry : entries)  // once, in the first part of both
            if (entry.begin >= begin && counts(entry, group, touch)) need(group, entry, kind, buffer);
        };
        meet(part.writers, NeedKind::kData);
        if (touch.access != Access::kRead) meet(part.readers, after_reader);
      });
    }
    for (const Touch& touch : touches) record(group, touch);
  }

  void record(u32 group, const Touch& touch) {
    Space& space = spaces_[touch.space];
    const Entry fresh{touch.begin, touch.end, group, step_, kNever};
    if (touch.buffer->kind == BufferKind::kPages) {
      if (touch.access == Access::kWrite) space.appended.push_back(fresh);
      return;
    }
    if (space.parts.empty()) {
      const i64 bytes = touch.space == kArenaSpace ? arena_.bytes : touch.buffer->bytes;
      space.part_bytes = std::max<i64>(1, (bytes + kParts - 1) / kParts);
      space.parts.resize(kParts);
    }
    space.for_each_part(touch.begin, touch.end, [&](Part& part, i64) {
      if (touch.access == Access::kRead) {
        part.readers.push_back(fresh);
        return;
      }
      overwrite(part.writers, fresh);
      overwrite(part.readers, fresh);
      part.writers.push_back(fresh);
    });
  }

  void overwrite(std::vector<Entry>& entries, const Entry& fresh) const {
    const u64 now = turn(fresh.group);
    std::erase_if(entries, [&](const Entry& e) { return e.overwritten != kNever && e.overwritten != now; });
    for (Entry& entry : entries) {
      // Groups of one node write independently, possibly with overlapping bounds: they do not replace each
      // other.
      const bool sibling =
          entry.step == step_ && tiles_.group_node[entry.group] == tiles_.group_node[fresh.group];
      if (entry.begin >= fresh.begin && entry.end <= fresh.end && !sibling) entry.overwritten = now;
    }
  }

  const Graph& graph_;
  const ArenaPlan& arena_;
  const Tiles& tiles_;
  std::vector<NodeRule> rules_;
  std::vector<std::vector<Touch>> touches_;  // by group
  std::vector<Space> spaces_;
  Hazards hazards_;
  int step_ = 0;
};

}  // namespace

Hazards find_hazards(const Graph& graph, const ArenaPlan& arena, const Tiles& tiles) {
  return Finder(graph, arena, tiles).run();
}

}  // namespace heddle
