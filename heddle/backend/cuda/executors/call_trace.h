// Traces a program that runs kernel by kernel, by events around each call. All tiles of a call are noted with its
// time, whatever their workers; the tiles of one worker divide it among themselves in their order.
#pragma once

#include <vector>

#include "heddle/backend/cuda/runtime/stream.h"
#include "heddle/ir/program/program.h"
#include "heddle/ir/trace.h"

namespace heddle::cuda {

class CallTrace {
 public:
  // Keeps at most `capacity` tiles of each worker; 0: nothing is noted.
  CallTrace(const Program& program, u32 capacity, const Device& device);

  bool on() const { return capacity_ > 0; }
  void clear();  // before a run
  // Called before and after the work of a call is put on the stream.
  void begin(const Stream& stream);
  void end(const Stream& stream, u32 step, u32 call);
  // Waits for the end of the last run and returns its trace.
  Trace read() const;

 private:
  struct Noted {
    explicit Noted(const Device& device) : begin(device), end(device) {}

    u32 step = 0, call = 0;
    Event begin, end;
  };

  const Device& device_;
  u32 capacity_;
  std::vector<std::vector<std::vector<u32>>> tiles_;  // by call and worker: indices in the worker's stream
  std::vector<Noted> calls_;
};

}  // namespace heddle::cuda
