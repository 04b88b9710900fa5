// The warps of a CTA that compute: threads 0 to kConsumers - 1.
#pragma once

#include "heddle/backend/cuda/device/params.h"

namespace heddle::device {

constexpr i32 kWarps = i32(kConsumerWarps), kConsumers = 32 * kWarps;
// Registers of a thread, where they move from the warps beside: together they fill a multiprocessor's 65,536.
constexpr u32 kConsumerRegisters = 232, kHelperRegisters = 40;
static_assert(kConsumers * kConsumerRegisters + 32 * kHelperWarps * kHelperRegisters <= 65536);

// What each of them wrote on chip before it is there for all of them after it.
inline void sync_consumers() {
  arch::sync_threads<1, kConsumers>();
}

}  // namespace heddle::device
