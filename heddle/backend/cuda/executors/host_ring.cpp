#include "heddle/backend/cuda/executors/host_ring.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <new>
#include <thread>
#include <utility>

#include "heddle/backend/cuda/executors/device_program.h"
#include "heddle/backend/cuda/executors/device_space.h"

namespace heddle::cuda {

constexpr auto kBetweenLooks = std::chrono::microseconds(20);  // a step takes hundreds of microseconds

HostRingReader::HostRingReader(const Program& program, const Memory& memory, const Device& device)
    : record_(program),
      space_(device_space(device)),
      host_(memory.base[record_.host]),
      device_(memory.base[record_.device]),
      shape_(program.shape),
      ring_(HostRing::bytes(u32(shape_.sequences)), device) {}

WatchParams HostRingReader::begin(const StepWatch& watch, u32* verdict) {
  StepHost host;
  space_.read(&host, host_, sizeof host);
  sequences_ = u32(host.sequences);
  failure_ = nullptr;
  new (ring_.data()) HostRing;
  WatchParams params{
      .ring = reinterpret_cast<HostRing*>(ring_.device_data()),
      .chosen = reinterpret_cast<const i32*>(device_ + StepDevice::sampled_offset(shape_)),
      .worker = record_.worker,
      .verdict = verdict,
  };
  // End tokens that do not fit end the run one step later, when the host has seen them.
  params.num_ends = u32(std::min<size_t>(watch.ends.size(), WatchParams::kEnds));
  std::copy_n(watch.ends.begin(), params.num_ends, params.ends);
  return params;
}

void HostRingReader::take(const StepWatch& watch, u32 step) {
  if (failure_) return;
  const std::span<const i32> chosen(ring().tokens(step, sequences_), sequences_);
  bool goes_on = false;
  try {
    goes_on = watch.on_step(chosen);
  } catch (...) {
    failure_ = std::current_exception();
  }
  goes_on &= std::ranges::find_first_of(chosen, watch.ends) == chosen.end();
  if (!goes_on) std::atomic_ref(ring().stop).store(1, std::memory_order_relaxed);
}

int HostRingReader::follow(const StepWatch& watch, const Stream& stream) {
  for (u32 told = 0;;) {
    const bool done = stream.done();  // asked first: the loop then sees all steps of a run that is done
    for (const u32 steps = std::atomic_ref(ring().steps).load(std::memory_order_acquire); told < steps;
         ++told)
      take(watch, told);
    if (done) return int(told);
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

void HostRingReader::rethrow() {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

}  // namespace heddle::cuda
