// When the calls of a program ran that runs kernel by kernel, by events around each. All tiles of a call, on whatever
// worker, are noted with its time; those of one worker share it in their order.
#pragma once

#include <vector>

#include "heddle/backend/cuda/runtime/stream.h"
#include "heddle/ir/program.h"
#include "heddle/ir/trace.h"

namespace heddle::cuda {

class CallTrace {
 public:
  // Keeps at most so many tiles of a worker; 0: nothing is noted.
  CallTrace(const Program& program, u32 capacity);

  bool on() const { return capacity_ > 0; }
  void clear();  // before a run
  // Around what is put on the stream for a call.
  void begin(const Stream& stream);
  void end(const Stream& stream, u32 step, u32 call);
  // Of the run before; waits for its end.
  Trace read() const;

 private:
  struct Noted {
    u32 step = 0, call = 0;
    Event begin = Event(), end = Event();
  };

  u32 capacity_;
  std::vector<std::vector<std::vector<u32>>> tiles_;  // by call and worker: indices in the worker's stream
  std::vector<Noted> calls_;
};

}  // namespace heddle::cuda
