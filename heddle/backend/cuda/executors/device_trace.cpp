#include "heddle/backend/cuda/executors/device_trace.h"

#include <algorithm>
#include <span>

#include "heddle/backend/cuda/runtime/unit_clock.h"

namespace heddle::cuda {
namespace {

template <class T>
std::vector<T> read_all(const DeviceBuffer& buffer, const Stream& stream) {
  std::vector<T> values(buffer.size() / sizeof(T));
  download(values.data(), buffer.data(), buffer.size(), stream);
  return values;
}

// Makes a worker's clock from its readings of both clocks. After a run that was stopped, the reading at the end is
// missing.
UnitClock clock_of(const TraceClocks& clocks, std::span<const TraceEvent> events, const u64* marks) {
  std::vector<UnitClock::Reading> readings{{clocks.begin.ticks, clocks.begin.nanoseconds}};
  for (size_t i = 0; i < events.size(); ++i) readings.push_back({events[i].done, marks[i]});
  if (clocks.end.ticks > readings.back().ticks)
    readings.push_back({clocks.end.ticks, clocks.end.nanoseconds});
  return UnitClock(readings);
}

// Converts the times of an event to nanoseconds since `origin`.
TraceEvent on_shared_clock(TraceEvent event, const UnitClock& clock, u64 origin) {
  const auto at = [&](u64 ticks) { return u64(std::max<i64>(0, i64(clock.at(ticks) - origin))); };
  event.fetched = at(event.fetched), event.ready = at(event.ready);
  event.computed = at(event.computed), event.done = at(event.done);
  event.starved = std::min(u64(clock.span(event.starved)), event.computed - event.ready);
  return event;
}

}  // namespace

DeviceTrace::DeviceTrace(u32 workers, u32 capacity, const Device& device)
    : workers_(workers), capacity_(capacity) {
  if (capacity == 0) return;
  const size_t lanes = size_t(kTraceRoles) * workers;
  events_ = DeviceBuffer(lanes * capacity * sizeof(TraceEvent), device);
  counts_ = DeviceBuffer(lanes * sizeof(u32), device);
  clocks_ = DeviceBuffer(workers * sizeof(TraceClocks), device);
  marks_ = DeviceBuffer(size_t(workers) * capacity * sizeof(u64), device);
}

TraceParams DeviceTrace::params() const {
  return {reinterpret_cast<TraceEvent*>(events_.data()), capacity_, reinterpret_cast<u32*>(counts_.data()),
          reinterpret_cast<TraceClocks*>(clocks_.data()), reinterpret_cast<u64*>(marks_.data())};
}

void DeviceTrace::clear(const Stream& stream) {
  if (capacity_ > 0) fill(counts_.data(), 0, counts_.size(), stream);
}

Trace DeviceTrace::read(const Stream& stream) const {
  if (capacity_ == 0) return {};
  const auto events = read_all<TraceEvent>(events_, stream);
  const auto counts = read_all<u32>(counts_, stream);
  const auto clocks = read_all<TraceClocks>(clocks_, stream);
  const auto marks = read_all<u64>(marks_, stream);
  stream.synchronize();
  u64 origin = ~0ull;
  for (const TraceClocks& worker : clocks) origin = std::min(origin, worker.begin.nanoseconds);
  const auto events_of = [&](u32 lane) {
    return std::span(events).subspan(size_t(lane) * capacity_, std::min(counts[lane], capacity_));
  };
  std::vector<UnitClock> unit_clocks;
  for (u32 worker = 0; worker < workers_; ++worker)
    unit_clocks.push_back(
        clock_of(clocks[worker], events_of(worker), marks.data() + size_t(worker) * capacity_));
  Trace trace;
  for (u32 lane = 0; lane < kTraceRoles * workers_; ++lane) {
    const u32 worker = lane % workers_;
    TraceLane& made = trace.lanes.emplace_back(TraceLane{worker,
                                                         TraceRole(lane / workers_),
                                                         clocks[worker].multiprocessor,
                                                         {},
                                                         counts[lane] - events_of(lane).size()});
    for (const TraceEvent& event : events_of(lane))
      made.events.push_back(on_shared_clock(event, unit_clocks[worker], origin));
  }
  return trace;
}

}  // namespace heddle::cuda
