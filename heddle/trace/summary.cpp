#include "heddle/trace/summary.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace heddle {
namespace {

class Summariser {
 public:
  Summariser(const Program& program, const Trace& trace) : program_(program), trace_(trace) {
    times_.resize(program.opcodes.size() + 1);  // the last: instructions without work
    for (size_t i = 0; i < program.opcodes.size(); ++i)
      times_[i].ops = fmt::format("{}", fmt::join(program.opcodes[i].ops, " "));
    times_.back().ops = "waits alone";
  }

  TraceSummary run() {
    TraceSummary summary;
    u64 begin = ~0ull, end = 0;
    u32 first = ~0u, last = 0;
    for (const TraceLane& lane : trace_.lanes) {
      summary.lost += lane.lost;
      for (const TraceEvent& event : lane.events) {
        first = std::min(first, event.epoch), last = std::max(last, event.epoch);
        if (lane.role == TraceRole::kConsumers) note_signal(lane, event);
        begin = std::min(begin, event.fetched), end = std::max(end, event.done);
      }
    }
    if (end == 0) return summary;
    summary.steps = last - first + 1;
    summary.workers = u32(program_.workers.size());
    summary.step = double(end - begin) / summary.steps;
    for (const TraceLane& lane : trace_.lanes) add(lane);
    for (const auto& [at, span] : spans_) {
      times_[at.opcode].phase += double(span.end - span.begin);
      times_[at.opcode].calls += 1;
    }
    for (WorkTimes& times : times_)
      if (times.sum() > 0) summary.work.push_back(mean(times, summary));
    return summary;
  }

 private:
  struct Call {
    u32 epoch, call;
    size_t opcode;
    auto operator<=>(const Call&) const = default;
  };
  struct Span {
    u64 begin = ~0ull, end = 0;
  };

  const Instruction& instruction(const TraceLane& lane, const TraceEvent& event) const {
    return program_.workers[lane.worker][event.instruction];
  }
  size_t row(const Instruction& instruction) const {
    return std::min<size_t>(instruction.opcode, program_.opcodes.size());
  }
  void note_signal(const TraceLane& lane, const TraceEvent& event) {
    const Signal& signal = instruction(lane, event).signal;
    if (signal.counter == kNoCounter) return;
    u64& last = signalled_[{signal.counter, event.epoch}];
    last = std::max(last, event.done);
  }
  // When the last of the producers that the instruction waits for had signalled.
  u64 produced(const Instruction& instruction, u32 epoch) const {
    u64 last = 0;
    for (int i = 0; i < kMaxWaits; ++i) {
      const u32 meant = instruction.waits_previous(i) ? epoch - 1 : epoch;
      const auto found = signalled_.find({instruction.waits[i].counter, meant});
      if (found != signalled_.end()) last = std::max(last, found->second);
    }
    return last;
  }
  void add(const TraceLane& lane) {
    u64 free = 0;
    for (const TraceEvent& event : lane.events) {
      const Instruction& what = instruction(lane, event);
      WorkTimes& times = times_[row(what)];
      if (lane.role == TraceRole::kLoader) {
        times.load += double(event.done - event.fetched);
        continue;
      }
      const u64 wait = event.ready - event.fetched, run = event.computed - event.ready;
      const u64 produced_at = std::clamp(produced(what, event.epoch), event.fetched, event.ready);
      if (free > 0) times.fetch += double(event.fetched - std::min(free, event.fetched));
      times.late += double(produced_at - event.fetched);
      times.hop += double(wait - (produced_at - event.fetched));
      times.starved += double(event.starved);
      times.compute += double(run - std::min(run, event.starved));
      times.signal += double(event.done - event.computed);
      free = event.done;
      if (what.opcode >= kNopOpcode) continue;
      Span& span = spans_[{event.epoch, what.call, what.opcode}];
      span.begin = std::min(span.begin, event.ready), span.end = std::max(span.end, event.done);
    }
  }
  static WorkTimes mean(WorkTimes times, const TraceSummary& summary) {
    const double share = 1.0 / (double(summary.steps) * summary.workers);
    for (double* value :
         {&times.fetch, &times.late, &times.hop, &times.starved, &times.compute, &times.signal, &times.load})
      *value *= share;
    times.calls /= summary.steps, times.phase /= summary.steps;
    return times;
  }

  const Program& program_;
  const Trace& trace_;
  std::vector<WorkTimes> times_;
  std::map<std::pair<u32, u32>, u64> signalled_;  // by counter and epoch: the last signal
  std::map<Call, Span> spans_;
};

std::string line(const WorkTimes& t) {
  const auto us = [](double ns) { return ns * 1e-3; };
  return fmt::format(
      "{:<50.50} {:6.0f} {:8.1f} {:8.1f} {:8.1f} {:8.1f} {:8.1f} {:8.1f} {:8.1f} {:8.1f} {:8.1f}\n", t.ops,
      t.calls, us(t.sum()), us(t.fetch), us(t.late), us(t.hop), us(t.starved), us(t.compute), us(t.signal),
      us(t.phase), us(t.load));
}

}  // namespace

TraceSummary summarise(const Program& program, const Trace& trace) {
  return Summariser(program, trace).run();
}

std::string to_text(const TraceSummary& summary) {
  std::string text =
      fmt::format("a step of {:.1f} us, {} of them, {} workers; us of a step, means over the workers\n",
                  summary.step * 1e-3, summary.steps, summary.workers);
  text += fmt::format("{:<50} {:>6} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}\n", "op", "calls",
                      "all", "fetch", "late", "hop", "starved", "compute", "signal", "phase", "loader");
  WorkTimes all{.ops = "all"};
  for (const WorkTimes& times : summary.work) {
    text += line(times);
    all.calls += times.calls, all.fetch += times.fetch, all.late += times.late, all.hop += times.hop;
    all.starved += times.starved, all.compute += times.compute, all.signal += times.signal;
    all.phase += times.phase, all.load += times.load;
  }
  text += line(all);
  if (summary.lost > 0) text += fmt::format("{} events found no room and are left out\n", summary.lost);
  return text;
}

}  // namespace heddle
