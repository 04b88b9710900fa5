#include "heddle/trace/summary.h"

#include <algorithm>
#include <map>
#include <set>

namespace heddle {
namespace {

class Summariser {
 public:
  explicit Summariser(const Timeline& timeline) : timeline_(timeline), causes_(timeline) {
    times_.resize(timeline.ops.size() + 1);  // the last: instructions without work
    for (size_t i = 0; i < timeline.ops.size(); ++i)
      times_[i].ops = timeline.ops[i], times_[i].op = u32(i + 1);
    times_.back().ops = "no work";
  }

  TraceSummary run() {
    TraceSummary summary;
    find_extent(summary);
    if (summary.steps == 0) return summary;
    for (u32 l = 0; l < timeline_.trace.lanes.size(); ++l) add(l, summary);
    for (const auto& [at, span] : spans_) {
      times_[at.op].phase += double(span.end - span.begin);
      times_[at.op].calls += 1;
    }
    summary.path = critical_path(timeline_, causes_);
    for (const PathStep& step : summary.path) {
      const TraceLane& lane = timeline_.trace.lanes[step.by.lane];
      const TraceEvent& event = lane.events[step.by.event];
      times_[row(timeline_.at(lane, event))].path += double(event.done - step.begin);
    }
    summary.bodies = body_lines(timeline_);
    summary.outside /= double(summary.steps) * summary.workers;
    for (WorkTimes& times : times_)
      if (times.sum() + times.load > 0) summary.work.push_back(mean(times, summary));
    return summary;
  }

 private:
  struct Call {
    u32 epoch, call;
    size_t op;
    auto operator<=>(const Call&) const = default;
  };
  struct Span {
    u64 begin = ~0ull, end = 0;
  };

  void find_extent(TraceSummary& summary) const {
    u32 first = ~0u, last = 0;
    u64 begin = ~0ull, end = 0;
    std::set<u32> units;
    for (const TraceLane& lane : timeline_.trace.lanes) {
      summary.lost += lane.lost;
      units.insert(lane.unit);
      for (const TraceEvent& event : lane.events) {
        first = std::min(first, event.epoch), last = std::max(last, event.epoch);
        begin = std::min(begin, event.fetched), end = std::max(end, event.done);
      }
    }
    if (end == 0) return;
    summary.steps = last - first + 1;
    summary.workers = u32(timeline_.workers.size()), summary.units = u32(units.size());
    summary.begin = begin, summary.end = end;
    summary.step = double(end - begin) / summary.steps;
  }
  size_t row(const TimelineInstruction& instruction) const {
    return instruction.call == kNoCall ? timeline_.ops.size() : timeline_.calls[instruction.call].op;
  }
  void add(u32 l, TraceSummary& summary) {
    const TraceLane& lane = timeline_.trace.lanes[l];
    u64 free = summary.begin;
    for (u32 e = 0; e < lane.events.size(); ++e) {
      const TraceEvent& event = lane.events[e];
      const TimelineInstruction& what = timeline_.at(lane, event);
      WorkTimes& times = times_[row(what)];
      if (lane.role == TraceRole::kLoader) {
        times.load += double(event.done - event.fetched);
        continue;
      }
      (e == 0 ? summary.outside : times.fetch) += double(event.fetched - free);
      if (e == 0 && !causes_.producer({l, e}))
        summary.outside += double(event.ready - event.fetched);
      else
        add_waits({l, e}, times);
      times.starved += double(event.starved);
      times.compute += double(event.computed - event.ready - event.starved);
      times.signal += double(event.done - event.computed);
      if (!event.dead) times.bytes += double(what.bytes), times.flops += what.flops;
      free = event.done;
      if (what.call == kNoCall) continue;
      Span& span = spans_[{event.epoch, what.call, row(what)}];
      span.begin = std::min(span.begin, event.ready), span.end = std::max(span.end, event.done);
    }
    if (lane.role == TraceRole::kConsumers) summary.outside += double(summary.end - free);
  }
  void add_waits(EventRef ref, WorkTimes& times) const {
    const TraceEvent& event = causes_.at(ref);
    const EventRef producer = causes_.producer(ref);
    const u64 produced =
        std::clamp(producer ? causes_.at(producer).done : event.fetched, event.fetched, event.ready);
    const u64 taken = causes_.unit_busy(ref.lane, produced, event.ready);
    times.late += double(produced - event.fetched);
    times.taken += double(taken);
    times.hop += double(event.ready - produced - taken);
  }
  static WorkTimes mean(WorkTimes times, const TraceSummary& summary) {
    const double steps = summary.steps, share = 1.0 / (steps * summary.workers);
    for (double* value : {&times.fetch, &times.late, &times.taken, &times.hop, &times.starved, &times.compute,
                          &times.signal, &times.load})
      *value *= share;
    for (double* value : {&times.calls, &times.phase, &times.path, &times.bytes, &times.flops})
      *value /= steps;
    return times;
  }

  const Timeline& timeline_;
  const Causes causes_;
  std::vector<WorkTimes> times_;
  std::map<Call, Span> spans_;
};

}  // namespace

WorkTimes TraceSummary::total() const {
  WorkTimes all{.ops = "all"};
  for (const WorkTimes& t : work) {
    all.calls += t.calls, all.fetch += t.fetch, all.late += t.late, all.taken += t.taken, all.hop += t.hop;
    all.starved += t.starved, all.compute += t.compute, all.signal += t.signal, all.phase += t.phase;
    all.load += t.load, all.path += t.path, all.bytes += t.bytes, all.flops += t.flops;
  }
  return all;
}

std::vector<IdleCause> idle_causes(const TraceSummary& summary) {
  const WorkTimes all = summary.total();
  return {{"late", "the last producer had not signalled", all.late},
          {"taken", "the worker's thread ran another worker", all.taken},
          {"hop", "signalled, but the wait was not over", all.hop},
          {"fetch", "between two instructions", all.fetch},
          {"starved", "weights were on their way", all.starved},
          {"signal", "publishing", all.signal},
          {"outside", "before a worker could begin, after its last", summary.outside}};
}

TraceSummary summarise(const Timeline& timeline) {
  return Summariser(timeline).run();
}

}  // namespace heddle
