#include "heddle/trace/predict.h"

#include <algorithm>

#include "heddle/base/error.h"

namespace heddle {
namespace {

constexpr u32 kSteps = 2;

class Simulation {
 public:
  Simulation(const Program& program, const CostModel& model)
      : program_(program),
        model_(model),
        costs_(costs_of(program)),
        workers_(program.workers.size()),
        counters_(kSteps * program.counters.size()) {
    for (const Call& call : program.calls) chains_.push_back(chain_name(program.node_of(call)));
    for (size_t i = 0; i < counters_.size(); ++i) counters_[i].left = program.counters[i / kSteps].total;
  }

  Prediction run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (u32 w = 0; w < workers_.size(); ++w)
        while (advance(w)) moved = true;
    }
    for (u32 w = 0; w < workers_.size(); ++w)
      require(workers_[w].events.size() == kSteps * length(w),
              "[predict] worker {} of {} stands at #{}, whose waits never end; see heddle check", w,
              program_.name, workers_[w].events.size() % std::max<size_t>(length(w), 1));
    return conclude();
  }

 private:
  struct Cause {  // of an event: the event whose end it waited for
    u32 worker = kNone;
    size_t event = 0;
  };
  struct Event {
    TraceEvent times;
    double begin = 0, end = 0, message = 0;
    Cause cause;
  };
  struct Worker {
    std::vector<Event> events;
    double free = 0;   // when its last tile ended
    double ahead = 0;  // bytes in its ring
  };
  struct Counter {  // of one step
    u32 left = 0;
    double full = 0;  // when the last signal came
    Cause last;
  };
  static constexpr u32 kNone = 0xffffffffu;

  size_t length(u32 worker) const { return program_.workers[worker].size() - 1; }

  // Null: the wait passes, because there was no earlier step.
  const Counter* meant(const Instruction& instruction, int i, u32 step) const {
    const u32 counter = instruction.waits[i].counter;
    const bool previous = instruction.waits_previous(i);
    if (counter == kNoCounter || (previous && step == 0)) return nullptr;
    return &counters_[kSteps * counter + (previous ? step - 1 : step)];
  }

  bool advance(u32 w) {
    Worker& worker = workers_[w];
    if (worker.events.size() == kSteps * length(w)) return false;
    const u32 step = u32(worker.events.size() / length(w)), index = u32(worker.events.size() % length(w));
    const Instruction& instruction = program_.workers[w][index];
    Event event{.begin = worker.free};
    if (!worker.events.empty()) event.cause = {w, worker.events.size() - 1};
    for (int i = 0; i < kMaxWaits; ++i) {
      const Counter* counter = meant(instruction, i, step);
      if (!counter) continue;
      if (counter->left > 0) return false;
      const double message = model_.message_ns(instruction.wait_kind(i));
      if (counter->full + message <= event.begin) continue;
      event.begin = counter->full + message, event.cause = counter->last, event.message = message;
    }
    run_tile(worker, event, instruction, costs_[w][index]);
    event.times.instruction = index, event.times.epoch = step + 1;
    if (instruction.signal.counter != kNoCounter) {
      Counter& counter = counters_[kSteps * instruction.signal.counter + step];
      counter.left -= instruction.signal.amount;
      if (event.end >= counter.full) counter.full = event.end, counter.last = {w, worker.events.size()};
    }
    worker.events.push_back(event);
    return true;
  }

  // The ring fills both while the worker waits and while it works.
  void run_tile(Worker& worker, Event& event, const Instruction& instruction, const Cost& cost) const {
    const double ring = double(program_.topology.ring_bytes), rate = 1 / model_.ns_per_stream_byte;
    worker.ahead = std::min(ring, worker.ahead + (event.begin - worker.free) * rate);
    const double drawing = std::max(0.0, cost.stream_bytes - worker.ahead) / rate;
    const double compute = instruction.opcode < kNopOpcode
                               ? model_.compute_ns(chains_[instruction.call], cost)
                               : model_.ns_per_tile;
    const double run = std::max(compute, drawing);
    worker.ahead = std::clamp(worker.ahead + run * rate - cost.stream_bytes, 0.0, ring);
    event.end = event.begin + run;
    event.times.fetched = u64(worker.free), event.times.ready = u64(event.begin);
    event.times.computed = event.times.done = u64(event.end);
    event.times.starved = u64(run - compute);
    worker.free = event.end;
  }

  Prediction conclude() {
    Prediction found;
    Cause last;
    double end = 0, longest = 0, busy = 0;
    for (u32 w = 0; w < workers_.size(); ++w) {
      const auto& events = workers_[w].events;
      if (events.empty()) continue;
      found.begin = std::max(found.begin, events[length(w) - 1].end);
      if (events.back().end > end) end = events.back().end, last = {w, events.size() - 1};
    }
    found.step = end - found.begin;
    for (u32 w = 0; w < workers_.size(); ++w) {
      double own = 0;
      for (size_t i = length(w); i < workers_[w].events.size(); ++i) {
        const Event& event = workers_[w].events[i];
        own += event.end - event.begin;
        found.waiting += double(event.times.ready - event.times.fetched) / double(workers_.size());
        for (const Wait& wait : program_.workers[w][i - length(w)].waits)
          found.waits += wait.counter != kNoCounter;
      }
      longest = std::max(longest, own), busy += own / double(workers_.size());
    }
    if (longest > 0) found.balance = busy / longest, found.busy = busy / found.step;
    follow(last, found);
    for (u32 w = 0; w < workers_.size(); ++w) {
      found.trace.lanes.push_back({.worker = w});
      for (const Event& event : workers_[w].events) found.trace.lanes.back().events.push_back(event.times);
    }
    return found;
  }

  // Follows the causes back from the end of the step to its beginning.
  void follow(Cause at, Prediction& found) const {
    while (at.worker != kNone && at.event >= length(at.worker)) {
      const Event& event = workers_[at.worker].events[at.event];
      found.path.push_back({at.worker, event.times.instruction, event.message > 0});
      found.path_work += event.end - event.begin;
      found.path_messages += event.message;
      found.messages += event.message > 0;
      at = event.cause;
    }
    std::reverse(found.path.begin(), found.path.end());
  }

  const Program& program_;
  const CostModel& model_;
  std::vector<std::vector<Cost>> costs_;
  std::vector<std::string> chains_;  // by call
  std::vector<Worker> workers_;
  std::vector<Counter> counters_;  // for each, its steps
};

}  // namespace

Prediction predict(const Program& program, const CostModel& model) {
  return Simulation(program, model).run();
}

}  // namespace heddle
