#include "heddle/trace/timeline.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "heddle/ir/executor/executor.h"
#include "heddle/ir/program/cost.h"

namespace heddle {
namespace {

// Bytes and flops of the tiles of one call. Live tiles that name the same part of the pages share the bytes
// that a step touches there, because the step record decides which tile touches which position.
class CallCosts {
 public:
  CallCosts(const Program& program, const Call& call, const TracedRun& run)
      : program_(program), node_(program.node_of(call)), rule_(node_), run_(run), live_(call.live) {
    step_.rows = run.rows > 0 ? run.rows : program.shape.rows;
    step_.wanted = run.wanted > 0 ? run.wanted : program.shape.wanted;
  }

  void announce(const TimelineInstruction& instruction) {
    for (const Region& region : regions(live_tile(instruction)))
      if (kind(region) == BufferKind::kPages) ++sharers_[{region.buffer, region.offset}];
  }
  void fill(TimelineInstruction& instruction) {
    const TileCoord tile = live_tile(instruction);
    for (const Region& region : regions(tile)) {
      const BufferKind kind = this->kind(region);
      if (kind == BufferKind::kPages && region.indexed && region.access == Access::kRead)
        continue;  // what sequences ask of scores: nothing, for most
      if (kind == BufferKind::kPages)
        instruction.bytes += u64(double(region.bytes()) * touched(region) /
                                 std::max(1u, sharers_[{region.buffer, region.offset}]));
      else if (kind != BufferKind::kStepHost && kind != BufferKind::kStepDevice &&
               !(region.indexed && is_immutable(kind)))
        instruction.bytes += u64(region.bytes());
    }
    instruction.flops = node_flops(node_, tile);
  }

 private:
  TileCoord live_tile(const TimelineInstruction& instruction) const {
    TileCoord tile;
    std::copy(instruction.tile.begin(), instruction.tile.end(), tile.at);
    clamp_to_live(live_, step_, tile);
    return tile;
  }
  const std::vector<Region>& regions(const TileCoord& tile) {
    regions_.clear();
    rule_.append(tile, regions_);
    return regions_;
  }
  BufferKind kind(const Region& region) const { return program_.buffers[region.buffer].info.kind; }
  // The fraction of the pages' positions that a step reads or writes.
  double touched(const Region& region) const {
    const i32 positions = region.access == Access::kRead ? run_.positions : program_.shape.rows;
    return std::clamp(double(positions) / std::max(1, run_.capacity), 0.0, 1.0);
  }

  const Program& program_;
  const Node node_;
  NodeRule rule_;
  const TracedRun& run_;
  LiveRows live_;
  StepHost step_;  // only its counts of rows are set
  std::map<std::pair<u32, i64>, u32> sharers_;
  std::vector<Region> regions_;
};

TimelineInstruction without_cost(const Instruction& from) {
  TimelineInstruction to;
  if (from.opcode != kNopOpcode) to.call = from.call;
  std::copy(from.tile, from.tile + 4, to.tile.begin());
  for (int i = 0; i < kMaxWaits; ++i) {
    to.waits[size_t(i)] = from.waits[i].counter;
    if (from.waits_previous(i)) to.previous |= u8(1u << i);
  }
  to.signal = from.signal.counter;
  return to;
}

using InstructionsOfCalls = std::vector<std::vector<TimelineInstruction*>>;

// Instructions that had work at least once.
InstructionsOfCalls live_instructions(size_t calls, Timeline& timeline) {
  InstructionsOfCalls of_call(calls);
  for (const TraceLane& lane : timeline.trace.lanes) {
    if (lane.role != TraceRole::kConsumers) continue;
    auto& stream = timeline.workers[lane.worker].stream;
    std::vector<bool> seen(stream.size());
    for (const TraceEvent& event : lane.events) {
      TimelineInstruction& instruction = stream[event.instruction];
      if (event.dead || instruction.call == kNoCall || seen[event.instruction]) continue;
      seen[event.instruction] = true;
      of_call[instruction.call].push_back(&instruction);
    }
  }
  return of_call;
}

void fill_costs(const Program& program, const TracedRun& run, Timeline& timeline) {
  const InstructionsOfCalls of_call = live_instructions(program.calls.size(), timeline);
  for (size_t c = 0; c < of_call.size(); ++c) {
    CallCosts costs(program, program.calls[c], run);
    for (const TimelineInstruction* instruction : of_call[c]) costs.announce(*instruction);
    for (TimelineInstruction* instruction : of_call[c]) costs.fill(*instruction);
  }
}

// Clocks that were aligned may differ by their resolution. This makes the times of a lane ascend.
void set_in_order(TraceLane& lane) {
  u64 free = 0;
  for (TraceEvent& event : lane.events) {
    event.fetched = std::max(event.fetched, free);
    event.ready = std::max(event.ready, event.fetched);
    event.done = free = std::max(event.done, event.ready);
    const bool loads = lane.role == TraceRole::kLoader;
    event.computed = loads ? event.done : std::clamp(event.computed, event.ready, event.done);
    event.starved = std::min(event.starved, event.computed - event.ready);
  }
}

}  // namespace

Timeline make_timeline(const Program& program, Trace trace, const TracedRun& run) {
  Timeline timeline{.name = program.name, .executor = run.executor};
  for (const Opcode& opcode : program.opcodes)
    timeline.ops.push_back(fmt::format("{}", fmt::join(opcode.ops, " ")));
  for (size_t c = 0; c < program.calls.size(); ++c)
    timeline.calls.push_back({.op = program.calls[c].opcode,
                              .node = program.calls[c].name,
                              .body = run.bodies.empty() ? "" : run.bodies[c]});
  for (const auto& stream : program.workers) {
    TimelineWorker& worker = timeline.workers.emplace_back();
    for (const Instruction& instruction : stream)
      if (instruction.opcode != kEndOpcode) worker.stream.push_back(without_cost(instruction));
  }
  timeline.trace = std::move(trace);
  for (TraceLane& lane : timeline.trace.lanes) {
    timeline.workers[lane.worker].unit = lane.unit;
    set_in_order(lane);
    for (TraceEvent& event : lane.events) event.dead &= timeline.at(lane, event).call != kNoCall;
  }
  fill_costs(program, run, timeline);
  return timeline;
}

std::vector<std::string> body_lines(const Timeline& timeline) {
  std::map<std::pair<u32, std::string>, int> counts;
  for (const TimelineCall& call : timeline.calls)
    if (!call.body.empty()) ++counts[{call.op, call.body}];
  std::vector<std::string> lines;
  for (const auto& [kind, count] : counts)
    lines.push_back(fmt::format("{} call{} of {}: {}", count, count == 1 ? "" : "s", timeline.ops[kind.first],
                                kind.second));
  return lines;
}

}  // namespace heddle
