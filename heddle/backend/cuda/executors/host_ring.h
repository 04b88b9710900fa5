// The host's side of a run that it watches: a ring in page-locked memory, into which the kernel puts the tokens of each
// step, and by which it is asked to end.
#pragma once

#include "heddle/backend/cuda/device/params.h"
#include "heddle/backend/cuda/runtime/memory.h"
#include "heddle/ir/executor.h"
#include "heddle/ir/watch.h"

namespace heddle::cuda {

class HostRingReader {
 public:
  // Of a program and the memory that its executor runs on.
  HostRingReader(const Program& program, const Memory& memory);

  // Before the launch: what it is given. `verdict`: a word of the device, which is zero.
  WatchParams begin(const StepWatch& watch, u32* verdict);
  // After it: tells `watch` of each step, until the stream is done. Returns how many there were.
  int follow(const StepWatch& watch, const Stream& stream);
  // Throws what `watch` threw.
  void rethrow();

 private:
  void take(const StepWatch& watch, u32 step);
  HostRing& ring() const { return *ring_.as<HostRing>(); }

  WatchedRecord record_;
  const std::byte* host_;  // the record's parts, on the device
  const std::byte* device_;
  StepShape shape_;
  PinnedBuffer ring_;
  u32 sequences_ = 0;  // of the run
  std::exception_ptr failure_;
};

}  // namespace heddle::cuda
