#include "heddle/trace/perfetto.h"

#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "heddle/trace/causes.h"

namespace heddle {
namespace {

// Field numbers are those of perfetto/protos/perfetto/trace/perfetto_trace.proto.
namespace field {
constexpr u32 kTracePacket = 1;
// TracePacket
constexpr u32 kTimestamp = 8, kSequence = 10, kTrackEvent = 11, kInterned = 12, kSequenceFlags = 13,
              kTrackDescriptor = 60, kFirstOnSequence = 87;
// TrackDescriptor, ProcessDescriptor
constexpr u32 kUuid = 1, kTrackName = 2, kProcess = 3, kParentUuid = 5, kChildOrdering = 11, kRank = 12;
constexpr u32 kPid = 1, kProcessName = 6;
// TrackEvent
constexpr u32 kAnnotation = 4, kType = 9, kNameIid = 10, kTrackUuid = 11, kFlow = 47, kTerminatingFlow = 48;
// InternedData, and what is interned
constexpr u32 kEventNames = 2, kAnnotationNames = 3, kAnnotationTexts = 29;
constexpr u32 kIid = 1, kName = 2;
// DebugAnnotation
constexpr u32 kAnnotationName = 1, kUint = 3, kTextIid = 17;
}  // namespace field

constexpr u64 kSliceBegin = 1, kSliceEnd = 2, kExplicitOrder = 3, kStateCleared = 1, kNeedsState = 2;
constexpr u64 kRootUuid = 1, kFirstLaneUuid = 2;

// The part of protobuf's wire format that a trace needs.
class Message {
 public:
  std::string bytes;

  void number(u32 field, u64 value) { key(field, 0), varint(value); }
  void fixed64(u32 field, u64 value) {
    key(field, 1);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(u32 field, std::string_view value) { key(field, 2), varint(value.size()), bytes.append(value); }
  void message(u32 field, const Message& value) { text(field, value.bytes); }

 private:
  void key(u32 field, u32 type) { varint(u64(field) << 3 | type); }
  void varint(u64 value) {
    for (; value >= 0x80; value >>= 7) bytes.push_back(char(value | 0x80));
    bytes.push_back(char(value));
  }
};

// Texts that the file stores once; ids begin at 1.
class Interned {
 public:
  explicit Interned(u32 field) : field_(field) {}
  u64 id(const std::string& text, Message& fresh) {
    const auto [at, is_new] = ids_.emplace(text, ids_.size() + 1);
    if (is_new) {
      Message entry;
      entry.number(field::kIid, at->second), entry.text(field::kName, text);
      fresh.message(field_, entry);
    }
    return at->second;
  }

 private:
  u32 field_;
  std::map<std::string, u64> ids_;
};

class Writer {
 public:
  explicit Writer(const Timeline& timeline) : timeline_(timeline), causes_(timeline) {}

  std::string run() {
    describe_tracks();
    find_flows();
    for (u32 l = 0; l < timeline_.trace.lanes.size(); ++l)
      for (u32 e = 0; e < timeline_.trace.lanes[l].events.size(); ++e) add({l, e});
    return std::move(file_.bytes);
  }

 private:
  void packet(Message packet) {
    packet.number(field::kSequence, 1);
    if (file_.bytes.empty()) packet.number(field::kFirstOnSequence, 1);
    packet.number(field::kSequenceFlags, file_.bytes.empty() ? kStateCleared | kNeedsState : kNeedsState);
    file_.message(field::kTracePacket, packet);
  }
  void track(u64 uuid, const Message& rest) {
    Message descriptor, made;
    descriptor.number(field::kUuid, uuid);
    descriptor.bytes += rest.bytes;
    made.message(field::kTrackDescriptor, descriptor);
    packet(std::move(made));
  }
  void describe_tracks() {
    Message process, root;
    process.number(field::kPid, 1);
    process.text(field::kProcessName, fmt::format("{} ({})", timeline_.name, timeline_.executor));
    root.message(field::kProcess, process), root.number(field::kChildOrdering, kExplicitOrder);
    track(kRootUuid, root);
    for (u32 l = 0; l < timeline_.trace.lanes.size(); ++l) {
      const TraceLane& lane = timeline_.trace.lanes[l];
      const bool loads = lane.role == TraceRole::kLoader;
      Message made;
      made.text(field::kTrackName,
                fmt::format("worker {}{} on {}", lane.worker, loads ? " loader" : "", lane.unit));
      made.number(field::kParentUuid, kRootUuid);
      made.number(field::kRank, u64(lane.worker) * kTraceRoles + u64(lane.role));
      track(kFirstLaneUuid + l, made);
    }
  }
  static u64 flow_id(EventRef ref) { return (u64(ref.lane) + 1) << 32 | ref.event; }
  void find_flows() {
    for (u32 l = 0; l < timeline_.trace.lanes.size(); ++l)
      for (u32 e = 0; e < timeline_.trace.lanes[l].events.size(); ++e)
        if (const EventRef producer = producer_of({l, e})) producers_.insert(flow_id(producer));
  }
  // The producer that an arrow comes from, if it is on another worker.
  EventRef producer_of(EventRef ref) const {
    if (timeline_.trace.lanes[ref.lane].role != TraceRole::kConsumers) return {};
    const EventRef producer = causes_.producer(ref);
    return producer && producer.lane != ref.lane ? producer : EventRef{};
  }
  void add(EventRef ref) {
    const TraceLane& lane = timeline_.trace.lanes[ref.lane];
    const TraceEvent& event = lane.events[ref.event];
    const TimelineInstruction& what = timeline_.at(lane, event);
    if (event.ready > event.fetched) slice(ref.lane, {event.fetched, event.ready}, "wait", {});
    Message more, fresh;
    annotate(what, event, more, fresh);
    if (const EventRef producer = producer_of(ref)) more.fixed64(field::kTerminatingFlow, flow_id(producer));
    if (producers_.contains(flow_id(ref))) more.fixed64(field::kFlow, flow_id(ref));
    const bool works = what.call != kNoCall && !event.dead;
    const std::string name = works ? timeline_.ops[timeline_.calls[what.call].op] : "no work";
    slice(ref.lane, {event.ready, event.computed}, name, more, std::move(fresh));
    if (event.done > event.computed) slice(ref.lane, {event.computed, event.done}, "publish", {});
  }
  void annotate(const TimelineInstruction& what, const TraceEvent& event, Message& more, Message& fresh) {
    const auto note = [&](const char* name, u32 field, u64 value) {
      Message annotation;
      annotation.number(field::kAnnotationName, annotation_names_.id(name, fresh));
      annotation.number(field, value);
      more.message(field::kAnnotation, annotation);
    };
    note("step", field::kUint, event.epoch), note("instruction", field::kUint, event.instruction);
    if (what.call == kNoCall) return;
    note("node", field::kTextIid, texts_.id(timeline_.calls[what.call].node, fresh));
    if (const std::string& body = timeline_.calls[what.call].body; !body.empty())
      note("body", field::kTextIid, texts_.id(body, fresh));
    note("tile", field::kTextIid, texts_.id(fmt::format("{}", what.tile), fresh));
    if (event.dead) return;
    note("bytes", field::kUint, what.bytes), note("flops", field::kUint, u64(std::min(what.flops, 1e18)));
    if (event.starved > 0) note("starved ns", field::kUint, event.starved);
  }
  struct Span {
    u64 begin, end;
  };
  void slice(u32 lane, Span span, const std::string& name, const Message& more, Message fresh = {}) {
    Message event, made;
    event.number(field::kType, kSliceBegin), event.number(field::kTrackUuid, kFirstLaneUuid + lane);
    event.number(field::kNameIid, names_.id(name, fresh));
    event.bytes += more.bytes;
    made.number(field::kTimestamp, span.begin), made.message(field::kTrackEvent, event);
    if (!fresh.bytes.empty()) made.message(field::kInterned, fresh);
    packet(std::move(made));
    Message end, last;
    end.number(field::kType, kSliceEnd), end.number(field::kTrackUuid, kFirstLaneUuid + lane);
    last.number(field::kTimestamp, span.end), last.message(field::kTrackEvent, end);
    packet(std::move(last));
  }

  const Timeline& timeline_;
  const Causes causes_;
  std::set<u64> producers_;  // flow ids of the arrows' beginnings
  Interned names_{field::kEventNames}, annotation_names_{field::kAnnotationNames},
      texts_{field::kAnnotationTexts};
  Message file_;
};

}  // namespace

std::string serialise_perfetto(const Timeline& timeline) {
  return Writer(timeline).run();
}

}  // namespace heddle
