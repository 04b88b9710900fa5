// The host's side of a run that it watches. The kernel puts the tokens of each step into a ring in page-locked
// memory, and the host asks the run to end through the same ring.
#pragma once

#include "heddle/backend/cuda/device/params.h"
#include "heddle/backend/cuda/runtime/memory.h"
#include "heddle/ir/executor/executor.h"
#include "heddle/ir/executor/watch.h"

namespace heddle::cuda {

class HostRingReader {
 public:
  // `memory`: the memory that the program's executor runs on, which is the memory of `device`.
  HostRingReader(const Program& program, const Memory& memory, const Device& device);

  // Prepares a run and returns the parameters for its launch. `verdict`: a word in device memory, which is zero.
  WatchParams begin(const StepWatch& watch, u32* verdict);
  // Tells `watch` of each step after the launch, until the stream is done. Returns how many steps there were.
  int follow(const StepWatch& watch, const Stream& stream);
  // Throws what `watch` threw.
  void rethrow();

 private:
  void take(const StepWatch& watch, u32 step);
  HostRing& ring() const { return *ring_.as<HostRing>(); }

  WatchedRecord record_;
  MemorySpace& space_;     // holds the record
  const std::byte* host_;  // the record's parts, on the device
  const std::byte* device_;
  StepShape shape_;
  PinnedBuffer ring_;
  u32 sequences_ = 0;  // sequences of the present run
  std::exception_ptr failure_;
};

}  // namespace heddle::cuda
