#include "heddle/backend/cuda/device_trace.h"

#include <algorithm>

namespace heddle::cuda {
namespace {

template <class T>
std::vector<T> read_all(const DeviceBuffer& buffer, const Stream& stream) {
  std::vector<T> values(buffer.size() / sizeof(T));
  download(values.data(), buffer.data(), buffer.size(), stream);
  return values;
}

// From a multiprocessor's ticks to nanoseconds since `origin`, by the two points at which both were read.
struct TickScale {
  TraceClocks clocks;
  u64 origin;

  u64 at(u64 ticks) const {
    return u64(std::max(0.0, double(clocks.begin.nanoseconds - origin) + span(ticks - clocks.begin.ticks)));
  }
  double span(u64 ticks) const {
    const double run = double(clocks.end.ticks - clocks.begin.ticks);
    return run > 0 ? double(i64(ticks)) * double(clocks.end.nanoseconds - clocks.begin.nanoseconds) / run : 0;
  }
  TraceEvent event(TraceEvent from) const {
    from.fetched = at(from.fetched), from.ready = at(from.ready);
    from.computed = at(from.computed), from.done = at(from.done);
    from.starved = u64(span(from.starved));
    return from;
  }
};

}  // namespace

DeviceTrace::DeviceTrace(u32 workers, u32 capacity) : workers_(workers), capacity_(capacity) {
  if (capacity == 0) return;
  const size_t lanes = size_t(kTraceRoles) * workers;
  events_ = DeviceBuffer(lanes * capacity * sizeof(TraceEvent));
  counts_ = DeviceBuffer(lanes * sizeof(u32));
  clocks_ = DeviceBuffer(workers * sizeof(TraceClocks));
}

TraceParams DeviceTrace::params() const {
  return {reinterpret_cast<TraceEvent*>(events_.data()), capacity_, reinterpret_cast<u32*>(counts_.data()),
          reinterpret_cast<TraceClocks*>(clocks_.data())};
}

void DeviceTrace::clear(const Stream& stream) {
  if (capacity_ > 0) fill(counts_.data(), 0, counts_.size(), stream);
}

Trace DeviceTrace::read(const Stream& stream) const {
  if (capacity_ == 0) return {};
  const auto events = read_all<TraceEvent>(events_, stream);
  const auto counts = read_all<u32>(counts_, stream);
  const auto clocks = read_all<TraceClocks>(clocks_, stream);
  stream.synchronize();
  u64 origin = ~0ull;
  for (const TraceClocks& worker : clocks) origin = std::min(origin, worker.begin.nanoseconds);
  Trace trace;
  for (u32 lane = 0; lane < kTraceRoles * workers_; ++lane) {
    const u32 worker = lane % workers_, kept = std::min(counts[lane], capacity_);
    const TickScale scale{clocks[worker], origin};
    TraceLane& made = trace.lanes.emplace_back(TraceLane{
        worker, TraceRole(lane / workers_), clocks[worker].multiprocessor, {}, u64(counts[lane] - kept)});
    for (u32 i = 0; i < kept; ++i) made.events.push_back(scale.event(events[size_t(lane) * capacity_ + i]));
  }
  return trace;
}

}  // namespace heddle::cuda
