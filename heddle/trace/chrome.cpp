#include "heddle/trace/chrome.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "heddle/base/json.h"
#include "heddle/trace/causes.h"

namespace heddle {
namespace {

std::string quoted(const std::string& text) {
  return Json(text).dump();
}

class ChromeWriter {
 public:
  explicit ChromeWriter(const Timeline& timeline) : timeline_(timeline), causes_(timeline) {}

  std::string run() {
    event("\"ph\":\"M\",\"name\":\"process_name\",\"args\":{{\"name\":{}}}", 0,
          quoted(fmt::format("{} ({})", timeline_.name, timeline_.executor)));
    for (u32 l = 0; l < timeline_.trace.lanes.size(); ++l) {
      const TraceLane& lane = timeline_.trace.lanes[l];
      const bool loads = lane.role == TraceRole::kLoader;
      event("\"ph\":\"M\",\"name\":\"thread_name\",\"args\":{{\"name\":\"worker {}{} on {}\"}}", l,
            lane.worker, loads ? " loader" : "", lane.unit);
      event("\"ph\":\"M\",\"name\":\"thread_sort_index\",\"args\":{{\"sort_index\":{}}}", l, l);
      for (u32 e = 0; e < lane.events.size(); ++e) add({l, e});
    }
    return "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n" + text_ + "\n]}\n";
  }

 private:
  template <class... Parts>
  void event(fmt::format_string<Parts...> format, u32 lane, Parts&&... parts) {
    text_ += fmt::format("{}{{\"pid\":1,\"tid\":{},", text_.empty() ? "" : ",\n", lane);
    text_ += fmt::format(format, std::forward<Parts>(parts)...) + "}";
  }
  void slice(u32 lane, u64 begin, u64 end, const std::string& name, const std::string& more) {
    event("\"ph\":\"X\",\"name\":{},\"ts\":{:.3f},\"dur\":{:.3f},\"args\":{{{}}}", lane, quoted(name),
          1e-3 * double(begin), 1e-3 * double(end - begin), more);
  }
  // An arrow from the end of what another worker made to the beginning of what waited for it. Viewers find the ends of an
  // arrow by the event around that time, so it begins a nanosecond early.
  void flow(EventRef from, EventRef to) {
    const TraceEvent& made = causes_.at(from);
    arrow(from.lane, 's', made.computed > made.ready ? made.computed - 1 : made.ready);
    arrow(to.lane, 'f', causes_.at(to).ready);
    ++flows_;
  }
  void arrow(u32 lane, char end, u64 at) {
    event("\"ph\":\"{}\",\"bp\":\"e\",\"cat\":\"wait\",\"name\":\"wait\",\"id\":{},\"ts\":{:.3f}", lane, end,
          flows_, 1e-3 * double(at));
  }
  void add(EventRef ref) {
    const TraceLane& lane = timeline_.trace.lanes[ref.lane];
    const TraceEvent& event = lane.events[ref.event];
    const TimelineInstruction& what = timeline_.at(lane, event);
    if (event.ready > event.fetched) slice(ref.lane, event.fetched, event.ready, "wait", {});
    const bool works = what.call != kNoCall && !event.dead;
    const std::string name = works ? timeline_.ops[timeline_.calls[what.call].op] : "no work";
    slice(ref.lane, event.ready, event.computed, name, notes(what, event));
    if (event.done > event.computed) slice(ref.lane, event.computed, event.done, "publish", {});
    if (lane.role != TraceRole::kConsumers) return;
    if (const EventRef producer = causes_.producer(ref); producer && producer.lane != ref.lane)
      flow(producer, ref);
  }
  std::string notes(const TimelineInstruction& what, const TraceEvent& event) const {
    std::string text = fmt::format("\"step\":{},\"instruction\":{}", event.epoch, event.instruction);
    if (what.call == kNoCall) return text;
    const TimelineCall& call = timeline_.calls[what.call];
    text += fmt::format(",\"node\":{},\"tile\":[{}]", quoted(call.node), fmt::join(what.tile, ","));
    if (!call.body.empty()) text += fmt::format(",\"body\":{}", quoted(call.body));
    if (!event.dead) text += fmt::format(",\"bytes\":{},\"flops\":{:.0f}", what.bytes, what.flops);
    if (!event.dead && event.starved > 0) text += fmt::format(",\"starved ns\":{}", event.starved);
    return text;
  }

  const Timeline& timeline_;
  const Causes causes_;
  std::string text_;
  u64 flows_ = 1;
};

}  // namespace

std::string serialise_chrome(const Timeline& timeline) {
  return ChromeWriter(timeline).run();
}

}  // namespace heddle
