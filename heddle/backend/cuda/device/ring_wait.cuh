// Lets consumers wait for panels in the weight ring, within a limit. The time goes to the worker's trace.
#pragma once

#include "heddle/backend/cuda/device/ring.cuh"
#include "heddle/backend/cuda/device/trace.cuh"
#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/arch/thread.cuh"

namespace heddle::device {

// The number of ticks that consumers wait for panels. 0: they gave up and do not wait again; bodies compute
// with whatever the slots hold until all consumers leave at the same edge. A real exit here would cost
// registers at every product.
inline volatile u64& panel_limit() {
  __shared__ u64 ticks;
  return ticks;
}

// True if the next `count` slots have their panels. Each lane of the warp tests one slot.
inline bool panels_are_there(const RingCursor& ring, u32 count, u32 lane) {
  const RingCursor mine = ring.ahead(lane < count ? lane : count - 1);
  const bool all = __all_sync(~0u, arch::barrier_is_past(mine.full(), mine.phase));
  __syncwarp();  // the panels that one lane has seen are visible to all lanes
  return all;
}
// Waits until they have, or until the limit is over. Adds the time of a wait to the trace.
inline void wait_for_panels(const RingCursor& ring, u32 count, u32 lane) {
  if (!panels_are_there(ring, count, lane)) {
    const RingCursor mine = ring.ahead(lane < count ? lane : count - 1);
    const u64 begin = arch::ticks();
    while (!__all_sync(~0u, arch::barrier_passed(mine.full(), mine.phase)))
      if (!__all_sync(~0u, arch::ticks() - begin <= panel_limit())) return void(panel_limit() = 0);
    if (arch::thread() == 0) trace_note(TraceRole::kConsumers).event.starved += arch::ticks() - begin;
    __syncwarp();
  }
}

}  // namespace heddle::device
