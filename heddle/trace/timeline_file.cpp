#include "heddle/trace/timeline_file.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/error.h"
#include "heddle/trace/bytes.h"

namespace heddle {
namespace {

constexpr std::string_view kTable("heddle\0", 7);  // its version follows
constexpr u8 kVersion = 2;                         // 1 has no bodies of calls
constexpr size_t kInstructionBytes = 53;

// Formats. Those of the ops follow.
enum Format : u16 { kWorker, kConsumerLane, kLoaderLane, kWait, kPublish, kNothing, kFirstOp };
constexpr u8 kRunParams = 3;  // instruction, step, starved

std::vector<Nanotrace::Format> formats_of(const Timeline& timeline) {
  const std::string tooltip = "step {1}, instruction {0}, {2} ns without weights";
  std::vector<Nanotrace::Format> formats = {
      {"worker {blockLinear}", timeline.executor, 0},  {"consumers", "what computes", 0},
      {"loader", "what draws weights ahead", 0},       {"wait", "for its producers", 0},
      {"publish", "the signal to those that wait", 0}, {"no work", tooltip, kRunParams}};
  for (const std::string& op : timeline.ops) formats.push_back({op, tooltip, kRunParams});
  if (formats.size() > 0xffff)
    fail(ErrorCode::kUnsupported, "[nanotrace] {} opcodes; it has room for {}", timeline.ops.size(),
         0xffff - kFirstOp);
  return formats;
}

void write_table(const Timeline& timeline, ByteWriter& table) {
  table.out += kTable;
  table.put(kVersion);
  table.text(timeline.executor);
  table.put(u32(timeline.calls.size()));
  for (const TimelineCall& call : timeline.calls)
    table.put(call.op), table.text(call.node), table.text(call.body);
  for (const TimelineWorker& worker : timeline.workers) {
    table.put(u32(worker.stream.size()));
    for (const TimelineInstruction& instruction : worker.stream) {
      table.put(instruction.call);
      for (const i32 at : instruction.tile) table.put(at);
      table.put(instruction.bytes), table.put(instruction.flops);
      for (const u32 counter : instruction.waits) table.put(counter);
      table.put(instruction.previous), table.put(instruction.signal);
    }
  }
  for (const TraceLane& lane : timeline.trace.lanes) table.put(lane.lost);
}

class EventWriter {
 public:
  EventWriter(const Timeline& timeline, const TraceLane& lane) : timeline_(timeline), lane_(lane) {
    track_.block = lane.worker;
    track_.format = lane.role == TraceRole::kLoader ? kLoaderLane : kConsumerLane;
    track_.lane = u32(lane.role);
  }
  Nanotrace::Track run() {
    for (const TraceEvent& event : lane_.events) {
      const u32 call = timeline_.at(lane_, event).call;
      const bool works = call != kNoCall && !event.dead;
      const u16 format = works ? u16(kFirstOp + timeline_.calls[call].op) : u16(kNothing);
      if (event.ready > event.fetched) add(event.fetched, event.ready, kWait);
      add(event.ready, event.computed, format);
      for (const u64 value : {u64(event.instruction), u64(event.epoch), event.starved})
        track_.params.push_back(u32(value));
      if (event.done > event.computed) add(event.computed, event.done, kPublish);
    }
    return std::move(track_);
  }

 private:
  void add(u64 begin, u64 end, u16 format) {
    if (end > 0xffffffffu)
      fail(ErrorCode::kUnsupported,
           "[nanotrace] the run took {:.2f} s; it has room for 4.29: trace fewer steps", double(end) * 1e-9);
    track_.events.push_back({u32(begin), u32(end - begin), format, track_.params.size()});
  }

  const Timeline& timeline_;
  const TraceLane& lane_;
  Nanotrace::Track track_;
};

TimelineInstruction read_instruction(ByteReader& table, const Timeline& timeline) {
  TimelineInstruction instruction;
  instruction.call = table.get<u32>();
  if (instruction.call != kNoCall && instruction.call >= timeline.calls.size())
    table.refuse("an instruction of a call that it does not have");
  for (i32& at : instruction.tile) at = table.get<i32>();
  instruction.bytes = table.get<u64>(), instruction.flops = table.get<double>();
  if (!std::isfinite(instruction.flops) || instruction.flops < 0)
    table.refuse("an impossible number of flops");
  for (u32& counter : instruction.waits) counter = table.get<u32>();
  instruction.previous = table.get<u8>(), instruction.signal = table.get<u32>();
  return instruction;
}

// Joins the events of a track again, into one for each instruction.
class EventReader {
 public:
  EventReader(const Timeline& timeline, const Nanotrace::Track& track, const ByteReader& place)
      : timeline_(timeline), track_(track), place_(place) {}

  TraceLane run() {
    if (track_.lane >= kTraceRoles) place_.refuse("a track of a role that does not exist");
    TraceLane lane{.worker = track_.block, .role = TraceRole(track_.lane)};
    lane.unit = timeline_.workers[lane.worker].unit;
    while (next_ < track_.events.size()) lane.events.push_back(event(lane));
    return lane;
  }

 private:
  u64 end_of(const Nanotrace::Event& event) const { return u64(event.begin) + event.duration; }
  const Nanotrace::Event* take(bool wanted) {
    if (next_ == track_.events.size() || !wanted) return nullptr;
    return &track_.events[next_++];
  }
  bool is_next(u16 format) const {
    return next_ < track_.events.size() && track_.events[next_].format == format;
  }
  TraceEvent event(const TraceLane& lane) {
    const Nanotrace::Event* wait = take(is_next(kWait));
    const Nanotrace::Event* ran = take(true);
    if (!ran || ran->format < kNothing || (wait && end_of(*wait) != ran->begin))
      place_.refuse("a wait or a publication without an instruction");
    TraceEvent event{
        .fetched = wait ? wait->begin : ran->begin, .ready = ran->begin, .computed = end_of(*ran)};
    event.instruction = track_.params[ran->params], event.epoch = track_.params[ran->params + 1];
    event.starved = track_.params[ran->params + 2];
    const Nanotrace::Event* published = take(is_next(kPublish));
    event.done = published ? end_of(*published) : event.computed;
    if ((published && published->begin != event.computed) || event.starved > event.computed - event.ready ||
        (!lane.events.empty() && event.fetched < lane.events.back().done))
      place_.refuse("times that do not follow one another");
    const auto& stream = timeline_.workers[lane.worker].stream;
    if (event.instruction >= stream.size()) place_.refuse("an event of an instruction that it does not have");
    const u32 call = stream[event.instruction].call;
    event.dead = call != kNoCall && ran->format == kNothing;
    if (ran->format != kNothing && (call == kNoCall || ran->format != kFirstOp + timeline_.calls[call].op))
      place_.refuse("an event that is not of its instruction's op");
    return event;
  }

  const Timeline& timeline_;
  const Nanotrace::Track& track_;
  const ByteReader& place_;
  size_t next_ = 0;
};

Timeline with_table(const Nanotrace& trace, const std::string& where) {
  ByteReader table(std::string_view(trace.rest).substr(kTable.size()), where);
  const std::vector<Nanotrace::Format> fixed = formats_of({});
  for (size_t i = 0; i < fixed.size(); ++i)
    if (trace.formats.size() < fixed.size() || trace.formats[i].params != fixed[i].params)
      table.refuse("formats that do not fit its table");
  const u8 version = table.get<u8>();
  if (version < 1 || version > kVersion) table.refuse("a table of another version");
  Timeline timeline{.name = trace.name, .executor = table.text()};
  for (size_t i = kFirstOp; i < trace.formats.size(); ++i) {
    timeline.ops.push_back(trace.formats[i].label);
    if (trace.formats[i].params != kRunParams) table.refuse("an op without its parameters");
  }
  timeline.calls.resize(table.count<u32>(6));
  for (TimelineCall& call : timeline.calls) {
    call.op = table.get<u32>(), call.node = table.text();
    if (version > 1) call.body = table.text();
    if (call.op >= timeline.ops.size()) table.refuse("a call of an op that it does not have");
  }
  for (const Nanotrace::Block& block : trace.blocks) {
    TimelineWorker& worker = timeline.workers.emplace_back(TimelineWorker{block.unit, {}});
    for (size_t n = table.count<u32>(kInstructionBytes); n > 0; --n)
      worker.stream.push_back(read_instruction(table, timeline));
  }
  for (const Nanotrace::Track& track : trace.tracks) {
    TraceLane& lane = timeline.trace.lanes.emplace_back(EventReader(timeline, track, table).run());
    lane.lost = table.get<u64>();
  }
  if (table.left() != 0) table.refuse("bytes left over");
  return timeline;
}

// Reads a trace of another program: each track becomes a worker, each format an op and a call, and each event
// an instruction.
Timeline without_table(const Nanotrace& trace) {
  Timeline timeline{.name = trace.name};
  std::vector<TimelineInstruction> stream;
  for (const Nanotrace::Format& format : trace.formats) {
    stream.push_back({.call = u32(timeline.calls.size())});
    timeline.calls.push_back({u32(timeline.ops.size()), format.label});
    timeline.ops.push_back(format.label);
  }
  for (const Nanotrace::Track& track : trace.tracks) {
    TraceLane& lane = timeline.trace.lanes.emplace_back();
    lane.worker = u32(timeline.workers.size()), lane.unit = lane.worker;
    timeline.workers.push_back({lane.unit, stream});
    u64 free = 0;
    for (const Nanotrace::Event& from : track.events) {
      const u64 begin = std::max<u64>(from.begin, free),
                end = std::max(begin, u64(from.begin) + from.duration);
      lane.events.push_back(
          {.fetched = begin, .ready = begin, .computed = end, .done = end, .instruction = from.format});
      free = end;
    }
  }
  return timeline;
}

}  // namespace

Nanotrace to_nanotrace(const Timeline& timeline) {
  Nanotrace trace{.name = timeline.name, .grid = {u32(timeline.workers.size()), 1, 1}};
  trace.formats = formats_of(timeline);
  for (u32 w = 0; w < timeline.workers.size(); ++w)
    trace.blocks.push_back({w, 0, u16(timeline.workers[w].unit), kWorker});
  for (const TraceLane& lane : timeline.trace.lanes)
    trace.tracks.push_back(EventWriter(timeline, lane).run());
  ByteWriter table;
  write_table(timeline, table);
  trace.rest = std::move(table.out);
  return trace;
}

Timeline from_nanotrace(const Nanotrace& trace, const std::string& where) {
  return trace.rest.starts_with(kTable) ? with_table(trace, where) : without_table(trace);
}

}  // namespace heddle
