// Compares the check with a second implementation on small random programs. The oracle derives the order pair
// by pair from the definitions; it uses sets of instructions instead of clocks, and bytes instead of cells.
#include <bitset>
#include <random>

#include <gtest/gtest.h>

#include "heddle/ir/check/expect.h"
#include "heddle/ir/program/print.h"

namespace heddle::proof {
namespace {

constexpr size_t kMostNodes = 256;  // instructions of two steps
using Set = std::bitset<kMostNodes>;

struct Span {
  i64 space, begin, end;
  Region region;
  BufferKind kind;
};

// An instruction in a step.
struct Happening {
  u32 worker, index, step;
  const Instruction* instruction;
  std::vector<Span> spans;
  Set before;  // events before this one
};

class Oracle {
 public:
  explicit Oracle(const Program& program) : program_(program) {
    for (u32 step = 0; step < 2; ++step)
      for (u32 w = 0; w < program.workers.size(); ++w)
        for (u32 i = 0; i + 1 < program.workers[w].size(); ++i)
          events_.push_back({w, i, step, &program.workers[w][i], spans_of(program.workers[w][i]), {}});
  }

  bool ok() {
    if (!run()) return false;
    for (size_t a = 0; a < events_.size(); ++a)
      for (size_t b = 0; b < events_.size(); ++b)
        if (a != b && (!ordered(a, b) || !counters_apart(a, b))) return false;
    for (size_t r = 0; r < events_.size(); ++r)
      for (const Span& span : events_[r].spans)
        if (span.region.access == Access::kRead && span.kind == BufferKind::kActivation && !written(r, span))
          return false;
    return true;
  }

 private:
  std::vector<Span> spans_of(const Instruction& instruction) const {
    std::vector<Span> spans;
    if (instruction.opcode == kNopOpcode) return spans;
    Node node;
    const Call& call = program_.calls[instruction.call];
    node.parts = {{find_test_op(program_.opcodes[call.opcode].ops[0]), call.args[0]}};
    TileCoord tile;
    std::copy(std::begin(instruction.tile), std::end(instruction.tile), tile.at);
    for (const Region& region : node_regions(node, tile)) {
      const ProgramBuffer& buffer = program_.buffers[region.buffer];
      const i64 arena = buffer.arena_offset;
      const i64 base = region.offset + std::max<i64>(arena, 0);
      spans.push_back({arena >= 0 ? -1 : i64(region.buffer), base, base + region.end() - region.offset,
                       region, buffer.info.kind});
    }
    return spans;
  }

  size_t find(u32 worker, u32 index, u32 step) const {
    for (size_t e = 0; e < events_.size(); ++e)
      if (events_[e].worker == worker && events_[e].index == index && events_[e].step == step) return e;
    return kMostNodes;
  }

  std::vector<size_t> producers(u32 counter, u32 step) const {
    std::vector<size_t> found;
    for (size_t e = 0; e < events_.size(); ++e)
      if (events_[e].step == step && events_[e].instruction->signal.counter == counter) found.push_back(e);
    return found;
  }

  // The events that a wait waits for; none when it means a step before the first.
  std::vector<size_t> awaited(const Happening& event, int i) const {
    const u32 counter = event.instruction->waits[i].counter;
    const bool previous = event.instruction->waits_previous(i);
    if (counter == kNoCounter || (previous && event.step == 0)) return {};
    return producers(counter, previous ? 0 : event.step);
  }

  // Computes the sets in an order in which the events can run. Returns false when some event never can.
  bool run() {
    Set ran;
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t e = 0; e < events_.size(); ++e)
        if (!ran[e] && try_run(e, ran)) ran.set(e), moved = true;
    }
    return ran.count() == events_.size();
  }

  bool try_run(size_t e, const Set& ran) {
    Happening& event = events_[e];
    const u32 length = u32(program_.workers[event.worker].size() - 1);
    const size_t before = event.index > 0  ? find(event.worker, event.index - 1, event.step)
                          : event.step > 0 ? find(event.worker, length - 1, 0)
                                           : kMostNodes;
    if (before < kMostNodes && !ran[before]) return false;
    for (int i = 0; i < kMaxWaits; ++i)
      for (size_t p : awaited(event, i))
        if (!ran[p]) return false;
    if (before < kMostNodes) {
      event.before = events_[before].before;
      event.before.set(before);
    }
    for (int i = 0; i < kMaxWaits; ++i)
      for (size_t p : awaited(event, i)) {
        event.before |= events_[p].before;
        event.before.set(p);
      }
    return true;
  }

  // Checks that whatever `b` does to bytes that `a` touches is ordered, if `a` comes first in any way.
  bool ordered(size_t a, size_t b) const {
    for (const Span& x : events_[a].spans)
      for (const Span& y : events_[b].spans) {
        if (x.space != y.space || x.end <= y.begin || y.end <= x.begin) continue;
        if (!apart(a, x, b, y) && !apart(b, y, a, x)) return false;
      }
    return true;
  }

  // Checks access x of a and then access y of b: they are ordered, or do not conflict.
  bool apart(size_t a, const Span& x, size_t b, const Span& y) const {
    const bool writes = x.region.access == Access::kWrite, then_writes = y.region.access == Access::kWrite;
    const u32 step = events_[a].step, then_step = events_[b].step;
    if ((!writes && !then_writes) || is_immutable(x.kind)) return true;
    if (x.kind == BufferKind::kPages) {
      if (writes && then_writes && step != then_step) return true;
      if (writes != then_writes && !(writes && step == 0 && then_step == 1) &&
          !(then_writes && then_step == 0 && step == 1))
        return true;
    }
    if (writes && then_writes && x.region.indexed && y.region.indexed && step == then_step &&
        events_[a].instruction->call == events_[b].instruction->call)
      return true;
    return events_[b].before[a];
  }

  // Checks that signals of one counter in the two steps do not mix.
  bool counters_apart(size_t a, size_t b) const {
    const u32 counter = events_[a].instruction->signal.counter;
    if (counter == kNoCounter || events_[b].instruction->signal.counter != counter) return true;
    if (events_[a].step != 0 || events_[b].step != 1) return true;
    for (const Happening& event : events_)
      for (const Wait& wait : event.instruction->waits)
        if (wait.counter == counter) return bool(events_[b].before[a]);
    return true;
  }

  // Checks that each 32 bytes of the span were last written in the reader's step and through its buffer.
  bool written(size_t reader, const Span& span) const {
    for (i64 at = span.begin; at < span.end; at += 32) {
      bool fresh = false;
      for (size_t w = 0; w < events_.size() && !fresh; ++w)
        fresh = events_[w].step == events_[reader].step && writes(w, span, at, true) &&
                (events_[reader].before[w]) && !overwritten(w, reader, span, at);
      if (!fresh) return false;
    }
    return true;
  }
  bool writes(size_t w, const Span& span, i64 at, bool same_buffer) const {
    for (const Span& x : events_[w].spans)
      if (x.region.access == Access::kWrite && x.space == span.space && x.begin <= at && at < x.end &&
          (x.region.buffer == span.region.buffer) == same_buffer)
        return true;
    return false;
  }
  bool overwritten(size_t w, size_t reader, const Span& span, i64 at) const {
    for (size_t other = 0; other < events_.size(); ++other)
      if (other != reader && writes(other, span, at, false) && events_[reader].before[other] &&
          !events_[w].before[other])
        return true;
    return false;
  }

  const Program& program_;
  std::vector<Happening> events_;
};

// Random calls on a few buffers, on random workers. Each waits for all earlier calls that it conflicts with,
// and all wait for the end of the previous step. So they are ordered until a mutation breaks that.
class RandomProgram {
 public:
  explicit RandomProgram(u32 seed) : random_(seed), builder_(3) {
    add_buffers();
    const u32 calls = 3 + pick(5);
    for (u32 i = 0; i < calls; ++i) add_call();
    for (u32 w = 0; w < 3; ++w) last_.push_back(builder_.counter());
    end_ = builder_.counter();
    for (u32 w = 0; w < 3; ++w) builder_.nop(w).wait(end_, EdgeKind::kCounted, true);
    for (u32 i = 0; i < calls; ++i) add_instruction(i);
    for (u32 w = 0; w < 3; ++w) builder_.nop(w).signal(last_[w]);
    builder_.nop(0).wait(last_[0]).wait(last_[1]).wait(last_[2]).signal(end_);
  }

  Program finish() { return builder_.finish(); }

  // Drops waits, or makes them mean another step or counter.
  Program mutated() {
    Program program = finish();
    std::vector<std::pair<Instruction*, int>> waits;
    for (auto& stream : program.workers)
      for (Instruction& instruction : stream)
        for (int i = 0; i < kMaxWaits; ++i)
          if (instruction.waits[i].counter != kNoCounter) waits.push_back({&instruction, i});
    for (u32 n = pick(4); n > 0; --n) {
      const auto [instruction, i] = waits[pick(u32(waits.size()))];
      const u32 counter = instruction->waits[i].counter;
      if (counter == kNoCounter) continue;
      switch (pick(3)) {
        case 0:
          instruction->waits[i].counter = kNoCounter;
          break;
        case 1:
          instruction->set_previous(i, !instruction->waits_previous(i));
          break;
        default:
          instruction->waits[i].counter = pick(u32(program.counters.size()));
          instruction->waits[i].target = program.counters[instruction->waits[i].counter].total;
      }
    }
    return program;
  }

 private:
  struct Made {
    u32 call, counter;
    TileCoord tile;
    std::vector<std::pair<u32, bool>> touches;  // bytes with equal numbers conflict; true: a write
  };

  u32 pick(u32 n) { return std::uniform_int_distribution<u32>(0, n - 1)(random_); }

  void add_buffers() {
    state_ = builder_.tensor("state", BufferKind::kStepDevice, DType::kF32, {1, 16});
    pages_ = builder_.tensor("pages", BufferKind::kPages, DType::kF32, {4, 16});
    for (u32 i = 0; i < 4; ++i)  // two of them share bytes of the arena
      buffers_.push_back(builder_.activation(fmt::format("b{}", i), {1, 16}, i < 2 ? -1 : 0));
  }

  Tensor half(Tensor tensor) {
    const u32 part = pick(4);
    if (part < 2) tensor.offset = 32 * part, tensor.size[1] = 8;
    return tensor;
  }

  void add_call() {
    Made made;
    const std::string name = fmt::format("call{}", made_.size());
    const Tensor from = written_.empty() || pick(3) == 0 ? state_ : written_[pick(u32(written_.size()))];
    Tensor to = pick(6) == 0 ? state_ : buffers_[pick(u32(buffers_.size()))];
    made.touches.push_back({from.buffer, false});
    switch (pick(5)) {
      case 0:
        made.call = builder_.call("scatter", name, TestScatter{from, pages_});
        made.tile = {{0, 1}};
        break;
      case 1:
        made.call = builder_.call("attend", name, TestAttend{from, pages_, to});
        made.tile = {{0, 1}};
        made.touches.push_back({to.buffer, true});
        break;
      default: {
        const Tensor a = half(from);
        Tensor b = to;
        b.offset += a.offset, b.size[1] = a.size[1];
        made.call = builder_.call("map", name, TestMap{a, {}, b});
        made.tile = {{0, 1, 0, a.size[1]}};
        made.touches.push_back({to.buffer, true});
        to = b;
      }
    }
    if (made.touches.size() > 1 && to.size[1] == 16 && to.buffer != state_.buffer) {
      // Tensors that share its bytes must not be read any more.
      std::erase_if(written_, [&](const Tensor& t) { return space(t.buffer) == space(to.buffer); });
      written_.push_back(to);
    }
    made.counter = builder_.counter();
    made_.push_back(made);
  }

  u32 space(u32 buffer) const { return buffer == buffers_[3].buffer ? buffers_[2].buffer : buffer; }

  void add_instruction(u32 i) {
    const u32 worker = pick(3);
    std::vector<u32> before;
    for (u32 j = 0; j < i; ++j)
      for (const auto& [a, writes] : made_[i].touches)
        for (const auto& [b, wrote] : made_[j].touches)
          if (space(a) == space(b) && (writes || wrote)) before.push_back(made_[j].counter);
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    while (before.size() > 2) {
      builder_.nop(worker).wait(before.back());
      before.pop_back();
    }
    builder_.add(worker, made_[i].call, made_[i].tile);
    for (u32 counter : before) builder_.wait(counter);
    builder_.signal(made_[i].counter);
  }

  std::mt19937 random_;
  Builder builder_;
  Tensor state_, pages_;
  std::vector<Tensor> buffers_, written_;
  std::vector<Made> made_;
  std::vector<u32> last_;
  u32 end_ = 0;
};

TEST(CheckOracle, AgreesOnRandomPrograms) {
  int accepted = 0, refused = 0;
  for (u32 seed = 0; seed < 4000; ++seed) {
    RandomProgram random(seed);
    const Program program = seed % 4 == 0 ? random.finish() : random.mutated();
    const CheckReport report = check_with(program, find_test_op);
    // The oracle does not check the form or the edges themselves; these programs have no such faults.
    const bool ok = Oracle(program).ok();
    (ok ? accepted : refused)++;
    ASSERT_EQ(report.ok(), ok) << "seed " << seed << "\n" << text_of(report) << print_program(program);
  }
  EXPECT_GT(accepted, 300);
  EXPECT_GT(refused, 300);
}

}  // namespace
}  // namespace heddle::proof
