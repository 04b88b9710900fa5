#include "heddle/ir/check/order.h"

namespace heddle::proof {
namespace {

constexpr size_t kMostClockBytes = size_t{4} << 30;

class Order {
 public:
  Order(const Form& form, const Edges& edges, const MemoryMap& map, Faults& faults)
      : form_(form),
        edges_(edges),
        faults_(faults),
        width_(form.workers()),
        accesses_(form, map, faults),
        known_(width_, width_),
        joined_(width_),
        cursors_(width_),
        counters_(2 * form.program->counters.size()),
        reused_(form.program->counters.size()) {
    for (size_t i = 0; i < counters_.size(); ++i) {
      const u32 c = u32(i / 2);
      counters_[i].left = form.program->counters[c].total;
      counters_[i].joins = edges.waits_this[c] + (i % 2 == 0 ? edges.waits_previous[c] : 0);
    }
  }

  void run() {
    for (u32 w = width_; w-- > 0;) ready_.push_back(w);
    while (!ready_.empty() && !faults_.full()) {
      const u32 worker = ready_.back();
      ready_.pop_back();
      while (!finished(worker) && advance(worker)) {
      }
    }
    if (!faults_.full()) report_blocked();
  }
  CheckWork work() const { return {accesses_.work().clocks + joins_, accesses_.work().cells}; }

 private:
  struct Cursor {
    u32 step = 0, index = 0;
  };
  struct Counter {             // a counter in one step
    u32 left = 0;              // signals that are missing in its total
    u32 joins = 0;             // waits that have not passed yet
    size_t row = kNoRow;       // row of joined_: what its producers know
    std::vector<u32> waiting;  // workers
  };
  static constexpr size_t kNoRow = ~size_t{0};

  bool finished(u32 worker) const { return cursors_[worker].step == 2 || form_.length(worker) == 0; }
  u32 id_of(u32 worker) const { return form_.first[worker] + cursors_[worker].index; }

  // The counter that a wait means. Null when the wait passes without one, because the first step has none
  // before it.
  Counter* meant(const Instruction& instruction, int i, u32 step) {
    const u32 counter = instruction.waits[i].counter;
    if (counter == kNoCounter) return nullptr;
    if (!instruction.waits_previous(i)) return &counters_[2 * size_t(counter) + step];
    return step == 0 ? nullptr : &counters_[2 * size_t(counter)];
  }

  // Runs the worker's next instruction. Returns false when it must wait.
  bool advance(u32 worker) {
    Cursor& cursor = cursors_[worker];
    const u32 id = id_of(worker), step = cursor.step;
    const Instruction& instruction = form_.instruction(id);
    for (int i = 0; i < kMaxWaits; ++i)
      if (Counter* counter = meant(instruction, i, step); counter && counter->left > 0) {
        counter->waiting.push_back(worker);
        return false;
      }
    u32* known = known_[worker];
    for (int i = 0; i < kMaxWaits; ++i)
      if (Counter* counter = meant(instruction, i, step)) pass(worker, *counter);
    const u32 at = step * form_.length(worker) + cursor.index + 1;
    known[worker] = at;
    accesses_.run({id, step, worker, at, known});
    if (instruction.signal.counter != kNoCounter) signal(id, step, worker);
    if (++cursor.index == form_.length(worker)) cursor = {step + 1, 0};
    return true;
  }

  void pass(u32 worker, Counter& counter) {
    join(known_[worker], joined_[counter.row]);
    if (--counter.joins == 0) free_.push_back(counter.row);
  }

  void signal(u32 id, u32 step, u32 worker) {
    const Signal& signal = form_.instruction(id).signal;
    Counter& counter = counters_[2 * size_t(signal.counter) + step];
    if (step == 1) check_reuse(id, signal.counter, worker);
    if (counter.row == kNoRow && counter.joins > 0) {
      counter.row = new_row();
      joined_.clear(counter.row);
    }
    if (counter.row != kNoRow) join(joined_[counter.row], known_[worker]);
    counter.left -= signal.amount;
    if (counter.left > 0) return;
    ready_.insert(ready_.end(), counter.waiting.begin(), counter.waiting.end());
    counter.waiting.clear();
  }

  void join(u32* into, const u32* other) { ++joins_, proof::join(into, other, width_); }

  // Reuses rows whose waits have all passed: counters may be many, but few are live.
  size_t new_row() {
    if (!free_.empty()) {
      const size_t row = free_.back();
      free_.pop_back();
      return row;
    }
    return joined_.add();
  }

  // A signal of the next step would count towards this step's total until that is full. So all of this step's
  // signals must come first.
  void check_reuse(u32 id, u32 counter, u32 worker) {
    if (edges_.waits_this[counter] + edges_.waits_previous[counter] == 0 || reused_[counter]) return;
    for (u32 other : edges_.producers_of(counter)) {
      const u32 theirs = form_.worker_of[other];
      if (known_[worker][theirs] >= other - form_.first[theirs] + 1) continue;
      return faults_.add(
          Rule::kCountersApart, FaultKind::kLiveReuse,
          "{} signals counter {} in step 2, but nothing orders it after {}, which signals it in step 1",
          form_.place(id), counter, form_.place(other));
    }
  }

  // The producer that a blocked worker waits for: the first of its counter's producers that has not
  // signalled.
  u32 missing_producer(const Counter& counter, u32 name) const {
    const u32 step = u32((&counter - counters_.data()) % 2);
    for (u32 id : edges_.producers_of(name)) {
      const u32 worker = form_.worker_of[id];
      const Cursor& cursor = cursors_[worker];
      if (cursor.step < step || (cursor.step == step && id >= id_of(worker))) return id;
    }
    return 0;  // not reached: the counter is not full
  }

  // One line of a deadlock. `next` becomes the worker that the blocked one waits for.
  std::string blocked_text(u32 worker, u32& next) {
    const u32 step = cursors_[worker].step;
    const Instruction& instruction = form_.instruction(id_of(worker));
    for (int i = 0; i < kMaxWaits; ++i) {
      const Counter* counter = meant(instruction, i, step);
      if (!counter || counter->left == 0) continue;
      const u32 name = instruction.waits[i].counter, total = form_.program->counters[name].total;
      const u32 missing = missing_producer(*counter, name);
      next = form_.worker_of[missing];
      return fmt::format("{} waits in step {} for counter {}, {} of {} seen, which {} is yet to signal",
                         form_.place(id_of(worker)), step + 1, name, total - counter->left, total,
                         form_.place(missing));
    }
    return "";
  }

  // Follows the chain of blocked workers until one appears again: that is a cycle.
  void report_blocked() {
    u32 blocked = 0, worker = 0;
    for (u32 w = width_; w-- > 0;)
      if (!finished(w)) ++blocked, worker = w;
    if (blocked == 0) return;
    constexpr size_t kNamed = 6;
    std::vector<u32> path;
    std::vector<std::string> lines;
    while (std::find(path.begin(), path.end(), worker) == path.end()) {
      path.push_back(worker);
      lines.push_back(blocked_text(worker, worker));
    }
    lines.erase(lines.begin(), lines.begin() + (std::find(path.begin(), path.end(), worker) - path.begin()));
    const size_t length = lines.size();
    if (length > kNamed) lines.resize(kNamed), lines.push_back("...");
    faults_.add(Rule::kEnds, FaultKind::kDeadlock, "{} of {} workers cannot go on, {} of them in a ring: {}",
                blocked, width_, length, fmt::join(lines, "; "));
  }

  const Form& form_;
  const Edges& edges_;
  Faults& faults_;
  u32 width_;
  u64 joins_ = 0;
  Accesses accesses_;
  Clocks known_;  // by worker
  Clocks joined_;
  std::vector<size_t> free_;  // unused rows of joined_
  std::vector<Cursor> cursors_;
  std::vector<Counter> counters_;  // two steps of each counter
  std::vector<bool> reused_;       // by counter: signalled too early
  std::vector<u32> ready_;
};

}  // namespace

CheckWork check_order(const Form& form, const Edges& edges, const MemoryMap& map, Faults& faults) {
  const size_t clocks =
      (size_t(form.workers()) + 2 * form.program->counters.size()) * form.workers() * sizeof(u32);
  if (const size_t bytes = clocks + Accesses::bytes(form, map); bytes > kMostClockBytes) {
    faults.add(FaultKind::kDoesNotFit, "[program] checking it takes {} bytes of clocks; at most {}", bytes,
               kMostClockBytes);
    return {};
  }
  Order order(form, edges, map, faults);
  order.run();
  return order.work();
}

}  // namespace heddle::proof
