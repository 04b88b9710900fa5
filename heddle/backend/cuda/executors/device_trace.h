// Holds the device memory that a run is traced to, and makes a trace of it on the host.
#pragma once

#include "heddle/backend/cuda/device/params.h"
#include "heddle/backend/cuda/runtime/memory.h"
#include "heddle/ir/trace.h"

namespace heddle::cuda {

class DeviceTrace {
 public:
  // Makes room for `capacity` events of each role of each worker; 0: nothing is traced.
  DeviceTrace(u32 workers, u32 capacity, const Device& device);

  TraceParams params() const;
  // Removes all events. Called before a run.
  void clear(const Stream& stream);
  // Waits for the stream and returns the trace of the last run.
  Trace read(const Stream& stream) const;

 private:
  u32 workers_, capacity_;
  DeviceBuffer events_, counts_, clocks_, marks_;
};

}  // namespace heddle::cuda
