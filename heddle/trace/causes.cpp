#include "heddle/trace/causes.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace heddle {

Causes::Causes(const Timeline& timeline) : timeline_(timeline) {
  std::map<u32, size_t> units;
  for (u32 l = 0; l < timeline.trace.lanes.size(); ++l) {
    const TraceLane& lane = timeline.trace.lanes[l];
    unit_index_.push_back(units.emplace(lane.unit, units.size()).first->second);
    units_.resize(units.size());
    if (lane.role != TraceRole::kConsumers) continue;
    for (u32 e = 0; e < lane.events.size(); ++e) {
      units_[unit_index_[l]].ran.push_back({l, e});
      const u32 counter = timeline.at(lane, lane.events[e]).signal;
      if (counter != kNoCounter) signals_.push_back({counter, lane.events[e].epoch, {l, e}});
    }
  }
  const auto key = [this](const Signalled& s) { return std::tuple(s.counter, s.epoch, at(s.by).done); };
  std::ranges::sort(signals_, {}, key);
  for (Unit& unit : units_) {
    std::ranges::stable_sort(unit.ran, {}, [this](EventRef ref) { return at(ref).ready; });
    u64 sum = 0;
    for (const EventRef ref : unit.ran) {
      unit.before.push_back(sum);
      sum += at(ref).done - at(ref).ready;
    }
  }
}

EventRef Causes::last_signal(u32 counter, u32 epoch) const {
  const auto key = [](const Signalled& s) { return std::pair(s.counter, s.epoch); };
  const auto after = std::ranges::upper_bound(signals_, std::pair(counter, epoch), {}, key);
  if (after == signals_.begin() || key(*(after - 1)) != std::pair(counter, epoch)) return {};
  return (after - 1)->by;
}

EventRef Causes::producer(EventRef ref) const {
  const TraceLane& lane = timeline_.trace.lanes[ref.lane];
  const TimelineInstruction& instruction = timeline_.at(lane, at(ref));
  EventRef last;
  for (int i = 0; i < kMaxWaits; ++i) {
    const u32 counter = instruction.waits[size_t(i)];
    if (counter == kNoCounter) continue;
    const EventRef found = last_signal(counter, at(ref).epoch - u32(instruction.waits_previous(i)));
    if (found && (!last || at(found).done > at(last).done)) last = found;
  }
  return last;
}

u64 Causes::busy_until(const Unit& unit, u64 time) const {
  const auto after =
      std::ranges::lower_bound(unit.ran, time, {}, [this](EventRef ref) { return at(ref).ready; });
  if (after == unit.ran.begin()) return 0;
  const size_t last = size_t(after - unit.ran.begin()) - 1;
  const TraceEvent& event = at(unit.ran[last]);
  return unit.before[last] + std::min(time, event.done) - event.ready;
}

u64 Causes::unit_busy(u32 lane, u64 begin, u64 end) const {
  if (end <= begin) return 0;
  const u64 until_begin = busy_until(unit_of(lane), begin), until_end = busy_until(unit_of(lane), end);
  return std::min(end - begin, until_end - std::min(until_begin, until_end));
}

EventRef Causes::unit_before(u32 lane, u64 time) const {
  const Unit& unit = unit_of(lane);
  const auto after =
      std::ranges::lower_bound(unit.ran, time, {}, [this](EventRef ref) { return at(ref).ready; });
  return after == unit.ran.begin() ? EventRef{} : *(after - 1);
}

std::vector<PathStep> critical_path(const Timeline& timeline, const Causes& causes) {
  EventRef last;
  for (u32 l = 0; l < timeline.trace.lanes.size(); ++l) {
    const TraceLane& lane = timeline.trace.lanes[l];
    if (lane.role != TraceRole::kConsumers || lane.events.empty()) continue;
    const EventRef end{l, u32(lane.events.size() - 1)};
    if (!last || causes.at(end).done > causes.at(last).done) last = end;
  }
  std::vector<PathStep> path;
  for (EventRef at = last; at;) {  // each starts before the next one
    const TraceEvent& event = causes.at(at);
    EventRef before;
    const auto consider = [&](EventRef candidate) {
      if (!candidate || causes.at(candidate).ready >= event.ready) return;  // clocks may differ by a step
      if (!before || causes.at(candidate).done > causes.at(before).done) before = candidate;
    };
    consider(causes.producer(at));
    consider(causes.unit_before(at.lane, event.ready));
    if (at.event > 0) consider({at.lane, at.event - 1});
    const u64 begin = before ? std::min(causes.at(before).done, event.ready) : event.ready;
    path.push_back({at, begin});
    at = before;
  }
  std::ranges::reverse(path);
  return path;
}

}  // namespace heddle
