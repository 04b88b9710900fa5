// The warps of a CTA that compute: threads 0 to kConsumers - 1.
#pragma once

namespace heddle::device {

// What each of them wrote on chip before it is there for all of them after it.
inline void sync_consumers() {
  arch::sync_threads<1, kConsumers>();
}

}  // namespace heddle::device
