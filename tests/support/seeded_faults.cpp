#include "tests/support/seeded_faults.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "tests/support/step_order.h"

namespace heddle {

namespace {

using Random = std::mt19937_64;
using enum FaultKind;

// A wait, or with wait = -1 an instruction.
struct Place {
  u32 worker = 0;
  size_t index = 0;
  int wait = -1;

  Instruction& in(Program& program) const { return program.workers[worker][index]; }
  std::string text() const { return fmt::format("worker {} #{} ", worker, index); }
};

template <class Keep>
std::vector<Place> instructions(const Program& program, Keep keep) {
  std::vector<Place> places;
  for (u32 w = 0; w < program.workers.size(); ++w)
    for (size_t i = 0; i + 1 < program.workers[w].size(); ++i)
      if (keep(program.workers[w][i])) places.push_back({w, i});
  return places;
}

template <class Keep>
std::vector<Place> waits(const Program& program, Keep keep) {
  std::vector<Place> places;
  for (const Place& at : instructions(program, [](const Instruction&) { return true; }))
    for (int k = 0; k < kMaxWaits; ++k) {
      const Instruction& instruction = program.workers[at.worker][at.index];
      if (instruction.waits[k].counter != kNoCounter && keep(instruction, k))
        places.push_back({at.worker, at.index, k});
    }
  return places;
}

template <class T>
const T* choose(const std::vector<T>& from, Random& random) {
  return from.empty() ? nullptr : &from[random() % from.size()];
}

// Chooses one of these waits, with equal probability for each kind of edge.
std::optional<Place> choose_wait(Program& program, std::vector<Place> places, Random& random,
                                 PlantedFault& fault) {
  std::set<int> kinds;
  const auto kind = [&](const Place& at) { return int(at.in(program).wait_kind(at.wait)); };
  for (const Place& at : places) kinds.insert(kind(at));
  if (kinds.empty()) return std::nullopt;
  fault.edge = *std::next(kinds.begin(), long(random() % kinds.size()));
  std::erase_if(places, [&](const Place& at) { return kind(at) != fault.edge; });
  return *choose(places, random);
}

bool any_wait(const Instruction&, int) {
  return true;
}
bool works(const Instruction& instruction) {
  return instruction.opcode < kNopOpcode;
}

// True if a producer of the counter did something that is no longer ordered before the waiter, or before the
// next instruction with work, which needs it.
bool loses_order(const Program& changed, const Place& at, u32 counter, bool previous) {
  const auto& stream = changed.workers[at.worker];
  size_t waiter = at.index;
  while (stream[waiter].opcode == kNopOpcode) ++waiter;
  if (stream[waiter].opcode == kEndOpcode) return false;
  const StepOrder order(changed);
  for (u32 w = 0; w < changed.workers.size(); ++w)
    for (size_t i = 0; i + 1 < changed.workers[w].size(); ++i) {
      const Instruction& producer = changed.workers[w][i];
      if (producer.signal.counter == counter && producer.opcode < kNopOpcode &&
          !order.reaches(order.id(w, i, previous ? 0 : 1), order.id(at.worker, waiter, 1)) &&
          conflict(changed, producer, stream[waiter], previous))
        return true;
    }
  return false;
}

// The kinds of faults that an unordered access may be reported as. Which access comes first depends on the
// order in which the check examines them.
const std::vector<FaultKind> kUnordered = {kRace, kLiveReuse, kNotWritten};

bool drop_wait(Program& program, Random& random, PlantedFault& fault) {
  const std::optional<Place> at = choose_wait(program, waits(program, any_wait), random, fault);
  if (!at) return false;
  Instruction& instruction = at->in(program);
  const Wait wait = std::exchange(instruction.waits[at->wait], Wait{});
  fault.kinds = kUnordered;
  if (loses_order(program, *at, wait.counter, instruction.waits_previous(at->wait))) return true;
  instruction.waits[at->wait] = wait;
  return false;
}

bool change_target(Program& program, Random& random, PlantedFault& fault, i32 by) {
  const std::optional<Place> at = choose_wait(program, waits(program, any_wait), random, fault);
  if (!at) return false;
  at->in(program).waits[at->wait].target += u32(by);
  fault.kinds = {kWaitInPart};
  fault.names = {at->text(), fmt::format("counter {}", at->in(program).waits[at->wait].counter)};
  return true;
}
bool lower_target(Program& program, Random& random, PlantedFault& fault) {
  return change_target(program, random, fault, -1);
}
bool raise_target(Program& program, Random& random, PlantedFault& fault) {
  return change_target(program, random, fault, 1);
}

// Moves an instruction before one of the same worker whose signal it waits for.
bool swap_order(Program& program, Random& random, PlantedFault& fault) {
  const auto own_producer = [&](const Place& at) {
    const Instruction& instruction = at.in(program);
    size_t i = 0;
    while (i < at.index && program.workers[at.worker][i].signal.counter != instruction.waits[at.wait].counter)
      ++i;
    return i;
  };
  auto places = waits(program, [](const Instruction& i, int k) { return !i.waits_previous(k); });
  std::erase_if(places, [&](const Place& at) { return own_producer(at) == at.index; });
  const std::optional<Place> at = choose_wait(program, places, random, fault);
  if (!at) return false;
  const size_t before = own_producer(*at);
  auto& stream = program.workers[at->worker];
  std::rotate(stream.begin() + long(before), stream.begin() + long(at->index),
              stream.begin() + long(at->index) + 1);
  fault.kinds = {kDeadlock};
  fault.names = {fmt::format("worker {} #{} ", at->worker, before), "cannot go on"};
  return true;
}

// Waits for a counter that has nothing to do with the right one, or for one that the waiter itself signals.
bool wrong_counter(Program& program, Random& random, PlantedFault& fault) {
  const std::optional<Place> at = choose_wait(program, waits(program, any_wait), random, fault);
  if (!at || program.counters.size() < 2) return false;
  Instruction& instruction = at->in(program);
  Wait& wait = instruction.waits[at->wait];
  const bool previous = instruction.waits_previous(at->wait);
  const Wait right = wait;
  const bool own = random() % 4 == 0 && instruction.signal.counter != kNoCounter && !previous;
  wait.counter =
      own ? instruction.signal.counter
          : u32((right.counter + 1 + random() % (program.counters.size() - 1)) % program.counters.size());
  wait.target = program.counters[wait.counter].total;
  fault.kinds = {kRace, kLiveReuse, kNotWritten, kDeadlock, kBadEdge};
  if (own || loses_order(program, *at, right.counter, previous)) return true;
  wait = right;
  return false;
}

bool wrong_signal(Program& program, Random& random, PlantedFault& fault) {
  const auto signals = [](const Instruction& i) { return i.signal.counter != kNoCounter; };
  const auto places = instructions(program, signals);
  const Place* at = choose(places, random);
  if (!at || program.counters.size() < 2) return false;
  u32& counter = at->in(program).signal.counter;
  fault.names = {fmt::format("counter {}", counter)};
  counter = u32((counter + 1 + random() % (program.counters.size() - 1)) % program.counters.size());
  fault.kinds = {kDeadlock, kWaitInPart, kBadEdge};
  fault.edge = int(at->in(program).signal_kind());
  return true;
}

// Makes two groups signal one counter; each is waited for as if it had the counter to itself.
bool share_counter(Program& program, Random& random, PlantedFault& fault) {
  if (program.counters.size() < 2) return false;
  const u32 a = u32(random() % program.counters.size());
  const u32 b = u32((a + 1 + random() % (program.counters.size() - 1)) % program.counters.size());
  for (auto& stream : program.workers)
    for (Instruction& instruction : stream) {
      if (instruction.signal.counter == b)
        instruction.signal.counter = a, fault.edge = int(instruction.signal_kind());
      for (Wait& wait : instruction.waits)
        if (wait.counter == b) wait.counter = a;
    }
  program.counters[a].total += program.counters[b].total;
  program.counters[b].total = 0;
  fault.kinds = {kWaitInPart, kBadEdge};
  fault.names = {fmt::format("counter {}", a)};
  return true;
}

bool wrong_edge(Program& program, Random& random, PlantedFault& fault) {
  const std::optional<Place> at = choose_wait(program, waits(program, any_wait), random, fault);
  if (!at) return false;
  Instruction& instruction = at->in(program);
  const u32 counter = instruction.waits[at->wait].counter;
  bool own = true;  // all producers are on the waiter's worker
  EdgeKind signals = EdgeKind::kInSm;
  for (const Place& p :
       instructions(program, [&](const Instruction& i) { return i.signal.counter == counter; }))
    own &= p.worker == at->worker, signals = p.in(program).signal_kind();
  std::vector<EdgeKind> kinds;  // kinds that do not fit
  if (!own) kinds.push_back(EdgeKind::kInSm);
  if (signals != EdgeKind::kCounted) kinds.push_back(EdgeKind::kCounted);
  const EdgeKind* kind = choose(kinds, random);
  if (!kind) return false;
  instruction.set_wait_kind(at->wait, *kind);
  fault.kinds = {kBadEdge};
  fault.names = {at->text()};
  return true;
}

// Makes the wait mean another step: this one instead of the previous one, where that cannot be, or the other
// way round.
bool wrong_epoch(Program& program, Random& random, PlantedFault& fault) {
  const std::optional<Place> at = choose_wait(program, waits(program, any_wait), random, fault);
  if (!at) return false;
  Instruction& instruction = at->in(program);
  const bool previous = instruction.waits_previous(at->wait);
  const u32 counter = instruction.waits[at->wait].counter;
  const StepOrder order(program);
  const auto& producers = order.producers(counter);
  const bool comes_later = std::any_of(producers.begin(), producers.end(), [&](size_t p) {
    return order.reaches(order.id(at->worker, at->index), p);
  });
  if (previous && !comes_later) return false;
  instruction.set_previous(at->wait, !previous);
  fault.kinds = previous ? std::vector{kDeadlock} : kUnordered;
  if (previous || loses_order(program, *at, counter, false)) return true;
  instruction.set_previous(at->wait, previous);
  return false;
}

// Regions of the instructions that touch a buffer of the arena.
struct Touching {
  Place at;
  Region region;
};
std::vector<std::vector<Touching>> touches(const Program& program) {
  std::vector<std::vector<Touching>> found(program.buffers.size());
  for (const Place& at : instructions(program, works))
    for (const Region& region : regions_of(program, program.workers[at.worker][at.index]))
      if (program.buffers[region.buffer].arena_offset >= 0) found[region.buffer].push_back({at, region});
  return found;
}

// Moves a buffer to the bytes of one that is written before it and read after it, so that the content is
// lost.
bool move_onto_live(Program& program, Random& random, PlantedFault& fault, bool same_reader) {
  const StepOrder order(program);
  const auto of = touches(program);
  struct Pair {
    u32 moved, onto;
  };
  std::vector<Pair> pairs;
  const auto id = [&](const Touching& t) { return order.id(t.at.worker, t.at.index); };
  const auto meet = [](const Touching& a, const Touching& b) {
    return a.region.offset < b.region.end() && b.region.offset < a.region.end();
  };
  const auto clobbers = [&](const Touching& w, const Touching& r, u32 onto) {
    if (w.region.access != Access::kWrite || r.region.access != Access::kRead || id(w) == id(r) ||
        !meet(w, r) || !order.reaches(id(w), id(r)))
      return false;
    return std::all_of(of[onto].begin(), of[onto].end(), [&](const Touching& a) {
      return a.region.access == Access::kRead || !meet(a, w) ||
             (id(a) != id(w) && order.reaches(id(a), id(w)));
    });
  };
  for (u32 moved = 0; moved < of.size(); ++moved)
    for (u32 onto = 0; onto < of.size(); ++onto) {
      if (moved == onto || of[moved].empty() || of[onto].empty() ||
          program.buffers[moved].arena_offset == program.buffers[onto].arena_offset ||
          program.buffers[onto].arena_offset + program.buffers[moved].info.bytes > program.arena_bytes)
        continue;
      bool found = false;
      for (const Touching& r : of[onto]) {
        const bool reads_both = std::any_of(of[moved].begin(), of[moved].end(), [&](const Touching& t) {
          return id(t) == id(r) && t.region.access == Access::kRead;
        });
        for (const Touching& w : of[moved])
          if (!found && reads_both == same_reader) found = clobbers(w, r, onto);
      }
      if (found) pairs.push_back({moved, onto});
    }
  const Pair* pair = choose(pairs, random);
  if (!pair) return false;
  program.buffers[pair->moved].arena_offset = program.buffers[pair->onto].arena_offset;
  fault.kinds = kUnordered;
  fault.names = {program.buffers[pair->moved].info.name};
  return true;
}
bool alias_buffer(Program& program, Random& random, PlantedFault& fault) {
  return move_onto_live(program, random, fault, true);
}
bool reuse_slot(Program& program, Random& random, PlantedFault& fault) {
  return move_onto_live(program, random, fault, false);
}

// Removes an instruction's work, or the whole instruction.
bool miss_tile(Program& program, Random& random, PlantedFault& fault) {
  const auto places = instructions(program, works);
  const Place* at = choose(places, random);
  if (!at) return false;
  Instruction& instruction = at->in(program);
  fault.kinds = {kNotWritten, kBadEdge, kDeadlock, kWaitInPart};
  fault.names = {program.calls[instruction.call].name};
  const u32 counter = instruction.signal.counter;
  if (random() % 2 == 0) {
    instruction.opcode = kNopOpcode, instruction.stream_items = 0;
  } else {
    if (counter != kNoCounter) fault.names = {fmt::format("counter {}", counter)};
    program.workers[at->worker].erase(program.workers[at->worker].begin() + long(at->index));
  }
  return true;
}

bool double_tile(Program& program, Random& random, PlantedFault& fault) {
  const auto places = instructions(program, works);
  const Place* at = choose(places, random);
  if (!at) return false;
  Instruction copy = at->in(program);
  copy.signal = {};
  const u32 worker = random() % 2 == 0 ? at->worker : u32(random() % program.workers.size());
  auto& stream = program.workers[worker];
  const size_t index = worker == at->worker ? at->index + 1 : stream.size() - 1;
  if (worker != at->worker)
    for (int k = 0; k < kMaxWaits; ++k) copy.waits[k] = {};
  stream.insert(stream.begin() + long(index), copy);
  fault.kinds = {kComputedTwice};
  fault.names = {at->text(), "both compute"};
  return true;
}

bool shift_tile(Program& program, Random& random, PlantedFault& fault) {
  const auto places = instructions(program, works);
  const Place* at = choose(places, random);
  if (!at) return false;
  Instruction& instruction = at->in(program);
  const Node node = program.node_of(program.calls[instruction.call]);
  const auto axes = node.main_part().op->axes(node.main_part().args.data(), {});
  const size_t axis = random() % axes.size();
  int coordinate = 0;
  for (size_t a = 0; a < axis; ++a) coordinate += axes[a].kind == TileAxis::Kind::kRange ? 2 : 1;
  const i32 by = random() % 2 == 0 ? axes[axis].unit : -axes[axis].unit;
  instruction.tile[coordinate] += by;
  if (axes[axis].kind == TileAxis::Kind::kRange) instruction.tile[coordinate + 1] += by;
  fault.kinds = {kComputedTwice, kNotWritten, kOutOfBounds, kMalformed, kResidency};
  fault.names = {node.name};
  return true;
}

bool truncate_stream(Program& program, Random& random, PlantedFault& fault) {
  const u32 worker = u32(random() % program.workers.size());
  auto& stream = program.workers[worker];
  if (random() % 2 == 0 || stream.size() < 2) {
    stream.pop_back();
    fault.kinds = {kMalformed};
    fault.names = {fmt::format("worker {}", worker), "without an end"};
    return true;
  }
  size_t kept = random() % (stream.size() - 1);
  while (kept > 0 && !works(stream[kept])) --kept;  // some instruction with work is lost
  if (!works(stream[kept])) return false;
  // The report names the first of the lost instructions first.
  u32 counter = kNoCounter, call = stream[kept].call;
  for (size_t i = kept; i + 1 < stream.size(); ++i) {
    counter = std::min(counter, stream[i].signal.counter);
    if (works(stream[i])) call = std::min(call, stream[i].call);
  }
  fault.names = {counter != kNoCounter ? fmt::format("counter {}", counter) : program.calls[call].name};
  stream.resize(kept);
  stream.emplace_back();
  fault.kinds = {kDeadlock, kNotWritten, kWaitInPart};
  return true;
}

bool too_many_workers(Program& program, Random& random, PlantedFault& fault) {
  Topology& topology = program.topology;
  fault.kinds = {kDoesNotFit, kMalformed};
  fault.names = {"[topology]", "workers"};
  topology.workers = random() % 2 == 0 ? 4097 + i32(random() % 1000) : topology.workers + 1;
  return true;
}

bool too_little_memory(Program& program, Random&, PlantedFault& fault) {
  if (program.topology.worker_memory == 0) return false;
  program.topology.ring_bytes = program.topology.worker_memory + 1;
  fault.kinds = {kDoesNotFit};
  fault.names = {"worker 0", "a ring of"};
  return true;
}

// Changes a home where its rows or panels are touched.
bool wrong_home(Program& program, Random& random, PlantedFault& fault) {
  std::vector<Home*> homes;
  for (Home& home : program.homes)
    if (home.begin < home.end) homes.push_back(&home);
  Home* const* home = choose(homes, random);
  if (!home || program.workers.size() < 2) return false;
  (*home)->worker =
      u32(((*home)->worker + 1 + random() % (program.workers.size() - 1)) % program.workers.size());
  fault.kinds = {kResidency};
  fault.names = {program.buffers[(*home)->buffer].info.name};
  return true;
}

bool two_homes(Program& program, Random& random, PlantedFault& fault) {
  const Home* home = choose(program.homes, random);
  if (!home || home->begin >= home->end) return false;
  fault.names = {"two homes", program.buffers[home->buffer].info.name};
  program.homes.push_back(Home(*home));
  fault.kinds = {kResidency};
  return true;
}

bool homes_not_alike(Program& program, Random& random, PlantedFault& fault) {
  const Home* home = choose(program.homes, random);
  if (!home || home->begin >= home->end || home->end >= program.buffers[home->buffer].info.bytes)
    return false;
  const i64 bytes = program.buffers[home->buffer].info.bytes;
  Home other = *home;
  other.begin = home->end, other.end = home->end + 1;
  other.period = home->period == bytes ? bytes - 1 : bytes;
  if (other.end > other.period) return false;
  fault.kinds = {kMalformed, kResidency};
  fault.names = {program.buffers[other.buffer].info.name};
  program.homes.push_back(other);
  return true;
}

bool wrong_total(Program& program, Random& random, PlantedFault& fault) {
  if (program.counters.empty()) return false;
  const u32 counter = u32(random() % program.counters.size());
  program.counters[counter].total += random() % 2 == 0 ? 1u : ~0u;
  fault.kinds = {kWaitInPart, kDeadlock};
  fault.names = {fmt::format("counter {}", counter)};
  return true;
}

// The total and the targets agree, but producers signal more.
bool total_in_part(Program& program, Random& random, PlantedFault& fault) {
  if (program.counters.empty()) return false;
  const u32 counter = u32(random() % program.counters.size());
  --program.counters[counter].total;
  for (auto& stream : program.workers)
    for (Instruction& instruction : stream)
      for (Wait& wait : instruction.waits)
        if (wait.counter == counter) --wait.target;
  fault.kinds = {kWaitInPart};
  fault.names = {fmt::format("counter {}", counter), "before the last"};
  return true;
}

bool two_kinds(Program& program, Random& random, PlantedFault& fault) {
  std::vector<u32> producers(program.counters.size());
  const auto signals =
      instructions(program, [](const Instruction& i) { return i.signal.counter != kNoCounter; });
  for (const Place& at : signals) ++producers[at.in(program).signal.counter];
  const Place* at = choose(signals, random);
  if (!at || producers[at->in(program).signal.counter] < 2) return false;
  Instruction& instruction = at->in(program);
  fault.edge = int(instruction.signal_kind());
  instruction.set_signal_kind(EdgeKind(1 - fault.edge));
  fault.kinds = {kBadEdge};
  fault.names = {at->text(), "in two kinds"};
  return true;
}

// One producer begins its stream and another ends its own, and nothing orders them from step to step.
bool counter_again(Program& program, Random& random, PlantedFault& fault) {
  const size_t workers = program.workers.size();
  if (workers < 2) return false;
  const size_t first = random() % workers, last = (first + 1 + random() % (workers - 1)) % workers;
  const u32 counter = u32(program.counters.size());
  program.counters.push_back({.total = 2});
  Instruction signal{.opcode = kNopOpcode, .signal = {counter, 1}};
  signal.set_signal_kind(EdgeKind::kCounted);
  Instruction wait{.opcode = kNopOpcode, .waits = {{counter, 2}}};
  wait.set_wait_kind(0, EdgeKind::kCounted);
  program.workers[first].insert(program.workers[first].begin(), signal);
  auto& stream = program.workers[last];
  stream.insert(stream.end() - 1, {signal, wait});
  fault.kinds = {kLiveReuse};
  fault.names = {fmt::format("signals counter {}", counter), fmt::format("worker {} #", last)};
  fault.edge = int(EdgeKind::kCounted);
  return true;
}

bool nobody_signals(Program& program, Random& random, PlantedFault& fault) {
  const auto free = [](const Instruction& i) { return i.waits[kMaxWaits - 1].counter == kNoCounter; };
  const auto places = instructions(program, free);
  const Place* at = choose(places, random);
  if (!at) return false;
  at->in(program).waits[kMaxWaits - 1] = {u32(program.counters.size()), 0};
  program.counters.push_back({});
  fault.kinds = {kWaitInPart};
  fault.names = {at->text(), "nobody signals"};
  return true;
}

bool output_in_part(Program& program, Random& random, PlantedFault& fault) {
  std::vector<u32> outputs;
  for (u32 b = 0; b < program.buffers.size(); ++b)
    if (program.buffers[b].info.kind == BufferKind::kOutput) outputs.push_back(b);
  const u32* output = choose(outputs, random);
  if (!output) return false;
  program.buffers[*output].info.bytes += 64;
  fault.kinds = {kNotWritten};
  fault.names = {program.buffers[*output].info.name, "of this output"};
  return true;
}

constexpr FaultSeed kSeeds[] = {
    {"dropped wait", drop_wait},
    {"lowered target", lower_target},
    {"raised target", raise_target},
    {"swapped order", swap_order},
    {"wrong counter", wrong_counter},
    {"wrong signal", wrong_signal},
    {"shared counter line", share_counter},
    {"wrong edge", wrong_edge},
    {"wrong epoch", wrong_epoch},
    {"aliased buffer", alias_buffer},
    {"slot reused too early", reuse_slot},
    {"missing tile", miss_tile},
    {"duplicated tile", double_tile},
    {"shifted tile", shift_tile},
    {"truncated stream", truncate_stream},
    {"too many workers", too_many_workers},
    {"too little memory", too_little_memory},
    {"wrong home", wrong_home},
    {"two homes", two_homes},
    {"homes not alike", homes_not_alike},
    {"wrong total", wrong_total},
    {"total in part", total_in_part},
    {"two kinds of signals", two_kinds},
    {"counter used again too early", counter_again},
    {"nobody signals", nobody_signals},
    {"output in part", output_in_part},
};

}  // namespace

std::span<const FaultSeed> fault_seeds() {
  return kSeeds;
}

}  // namespace heddle
