#include "heddle/ir/check/edges.h"

#include <utility>

#include "heddle/ir/program/print.h"

namespace heddle::proof {

Edges make_edges(const Form& form) {
  const size_t counters = form.program->counters.size();
  Edges edges;
  edges.begin.assign(counters + 1, 0);
  edges.waits_this.assign(counters, 0);
  edges.waits_previous.assign(counters, 0);
  for (u32 id = 0; id < form.size(); ++id) {
    const Instruction& instruction = form.instruction(id);
    if (instruction.signal.counter != kNoCounter) ++edges.begin[instruction.signal.counter + 1];
    for (int i = 0; i < kMaxWaits; ++i)
      if (const u32 counter = instruction.waits[i].counter; counter != kNoCounter)
        ++(instruction.waits_previous(i) ? edges.waits_previous : edges.waits_this)[counter];
  }
  for (size_t c = 0; c < counters; ++c) edges.begin[c + 1] += edges.begin[c];
  edges.producers.resize(edges.begin.back());
  std::vector<u32> next(edges.begin.begin(), edges.begin.end() - 1);
  for (u32 id = 0; id < form.size(); ++id)
    if (const u32 counter = form.instruction(id).signal.counter; counter != kNoCounter)
      edges.producers[next[counter]++] = id;
  return edges;
}

namespace {

// Facts about a counter's producers that the checks of its waits need.
struct Group {
  u64 sum = 0;                      // sum of the amounts
  EdgeKind kind = EdgeKind::kInSm;  // kind of the signals
  u32 first = 0;                    // one of the instructions
  bool one_worker = true;
  bool mixed = false;  // some signals have another kind
};

class CheckEdges {
 public:
  CheckEdges(const Form& form, const Edges& edges, Faults& faults)
      : form_(form), program_(*form.program), edges_(edges), faults_(faults) {}

  void run() {
    for (u32 c = 0; c < program_.counters.size(); ++c) groups_.push_back(check_group(c));
    for (u32 id = 0; id < form_.size() && !faults_.full(); ++id)
      for (int i = 0; i < kMaxWaits; ++i)
        if (form_.instruction(id).waits[i].counter != kNoCounter) check_wait(id, i);
  }

 private:
  Group check_group(u32 counter) {
    Group group;
    const auto producers = edges_.producers_of(counter);
    const CounterInfo& info = program_.counters[counter];
    for (u32 id : producers) {
      const Instruction& instruction = form_.instruction(id);
      if (group.sum == 0) group.first = id, group.kind = instruction.signal_kind();
      group.sum += instruction.signal.amount;
      group.one_worker &= form_.worker_of[id] == form_.worker_of[group.first];
      if (instruction.signal_kind() != group.kind && !std::exchange(group.mixed, true))
        faults_.add(Rule::kOneKindOfSignals, FaultKind::kBadEdge,
                    "{} and {} signal counter {} in two kinds, {} and {}", form_.place(group.first),
                    form_.place(id), counter, name(group.kind), name(instruction.signal_kind()));
    }
    const auto words = [&] {
      return fmt::format("counter {}: total {}, but its {} producers{}{} signal {} a step", counter,
                         info.total, producers.size(), producers.empty() ? "" : ", first ",
                         producers.empty() ? "" : form_.place(group.first), group.sum);
    };
    if (info.total > group.sum)
      faults_.add(Rule::kCountersFill, FaultKind::kDeadlock, "{}; it never fills", words());
    if (info.total < group.sum)
      faults_.add(Rule::kTotalsInFull, FaultKind::kWaitInPart, "{}; waits would pass before the last",
                  words());
    return group;
  }

  void check_wait(u32 id, int i) {
    const Instruction& instruction = form_.instruction(id);
    const Wait& wait = instruction.waits[i];
    const Group& group = groups_[wait.counter];
    const u32 total = program_.counters[wait.counter].total;
    if (group.sum == 0)
      return faults_.add(Rule::kSomebodySignals, FaultKind::kWaitInPart,
                         "{} waits for counter {}, which no instruction signals", form_.place(id),
                         wait.counter);
    if (wait.target != total)
      return faults_.add(Rule::kWaitsInFull, FaultKind::kWaitInPart,
                         "{} waits until counter {} is {} a step; {} and its other producers make {}",
                         form_.place(id), wait.counter, wait.target, form_.place(group.first), total);
    if (const char* why = misfit(id, instruction.wait_kind(i), group))
      faults_.add(Rule::kWaitsFit, FaultKind::kBadEdge,
                  "{} waits for counter {} by a {} edge, signalled by {} as {}: {}", form_.place(id),
                  wait.counter, name(instruction.wait_kind(i)), form_.place(group.first), name(group.kind),
                  why);
  }

  // Says why the counter's signals cannot satisfy a wait of this kind; null: they can.
  const char* misfit(u32 id, EdgeKind kind, const Group& group) const {
    if (kind == EdgeKind::kCounted)
      return group.kind == EdgeKind::kCounted ? nullptr : "the signals must be counted";
    return group.one_worker && form_.worker_of[id] == form_.worker_of[group.first]
               ? nullptr
               : "all producers must be on the waiter's worker";
  }

  const Form& form_;
  const Program& program_;
  const Edges& edges_;
  Faults& faults_;
  std::vector<Group> groups_;
};

}  // namespace

void check_edges(const Form& form, const Edges& edges, Faults& faults) {
  CheckEdges(form, edges, faults).run();
}

}  // namespace heddle::proof
