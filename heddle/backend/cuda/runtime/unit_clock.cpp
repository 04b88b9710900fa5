#include "heddle/backend/cuda/runtime/unit_clock.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/invariant.h"

namespace heddle::cuda {

namespace {

constexpr size_t kStride = 8;  // readings from knot to knot; as many on each side of one say where it is

}  // namespace

UnitClock::UnitClock(std::span<const Reading> readings) {
  HEDDLE_CHECK(!readings.empty());
  first_ = readings.front();
  const Reading& last = readings.back();
  if (last.ticks > first_.ticks)
    rate_ = double(last.nanoseconds - first_.nanoseconds) / double(last.ticks - first_.ticks);
  const auto lead_of = [&](const Reading& reading) {
    return double(i64(reading.nanoseconds - first_.nanoseconds)) - average(reading.ticks);
  };
  for (size_t i = 0; i < readings.size(); i += kStride) {
    const size_t begin = i - std::min(i, kStride), end = std::min(readings.size(), i + kStride + 1);
    double most = lead_of(readings[begin]);
    for (const Reading& reading : readings.subspan(begin, end - begin))
      most = std::max(most, lead_of(reading));
    knots_.push_back({readings[i].ticks, most});
  }
}

double UnitClock::lead(u64 ticks) const {
  const auto after = std::ranges::upper_bound(knots_, ticks, {}, &Knot::ticks);
  if (after == knots_.begin()) return knots_.front().lead;
  if (after == knots_.end()) return knots_.back().lead;
  const Knot &from = *(after - 1), &to = *after;
  return from.lead + (to.lead - from.lead) * double(ticks - from.ticks) / double(to.ticks - from.ticks);
}

// Nanoseconds since the epoch are too many for a double: it has steps of 256 there.
u64 UnitClock::at(u64 ticks) const {
  return first_.nanoseconds + u64(i64(std::floor(average(ticks) + lead(ticks))));
}

}  // namespace heddle::cuda
