// Where a run on a device is traced to, and what the host makes of it.
#pragma once

#include "heddle/backend/cuda/device/params.h"
#include "heddle/backend/cuda/runtime/memory.h"
#include "heddle/ir/trace.h"

namespace heddle::cuda {

class DeviceTrace {
 public:
  // Room for so many events of each role of each worker; 0: nothing is traced.
  DeviceTrace(u32 workers, u32 capacity);

  TraceParams params() const;
  // Before a run: no event is there.
  void clear(const Stream& stream);
  // Of the run before; waits for the stream.
  Trace read(const Stream& stream) const;

 private:
  u32 workers_, capacity_;
  DeviceBuffer events_, counts_, clocks_, marks_;
};

}  // namespace heddle::cuda
