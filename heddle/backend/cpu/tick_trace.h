// Keeps the notes that threads make of a run. They note as little as will do, because they make a note between two
// tiles, and a tile may take no more than a microsecond. Times are ticks of the processor; the system's clock takes
// longer to read.
#pragma once

#include <chrono>
#include <vector>

#include "heddle/ir/program/program.h"
#include "heddle/ir/trace.h"

namespace heddle {

class TickTrace {
 public:
  // Makes room for `capacity` instructions of each worker; 0: nothing is traced. Worker w runs on thread w % threads.
  TickTrace(const Program& program, u32 threads, u32 capacity)
      : program_(program),
        threads_(threads),
        capacity_(capacity),
        lanes_(capacity > 0 ? program.workers.size() : 0) {
    for (Lane& lane : lanes_) lane.notes.reserve(capacity);
  }

  bool on() const { return capacity_ > 0; }
  static u64 ticks() {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();  // since Nehalem it has one rate on all cores, whatever their own
#else
    return nanoseconds();
#endif
  }

  // One thread calls begin() before a run and end() after it.
  void begin(u32 first_epoch) {
    for (Lane& lane : lanes_) lane.notes.clear(), lane.lost = 0;
    first_epoch_ = first_epoch;
    begin_ = now();
  }
  void end() { end_ = now(); }

  // The times of a worker's next instruction. The thread that owns the worker notes them.
  struct Note {
    u64 ready, computed, done;  // ticks; the last bit of `computed`: the tile had no work
  };
  void note(u32 worker, u64 ready, u64 computed, bool dead, u64 done) {
    Lane& lane = lanes_[worker];
    if (lane.notes.size() == capacity_) {
      ++lane.lost;
      return;
    }
    lane.notes.push_back({ready, (computed & ~u64{1}) | u64(dead), done});
    // Prefetches the cache line of the next note, so that no signal has to wait for it.
    __builtin_prefetch(lane.notes.data() + lane.notes.size(), 1);
  }

  Trace read() const {
    Trace trace;
    for (u32 w = 0; w < lanes_.size(); ++w)
      trace.lanes.push_back({.worker = w, .unit = w % threads_, .events = events(w), .lost = lanes_[w].lost});
    return trace;
  }

 private:
  struct Point {
    u64 ticks = 0, nanoseconds = 0;
  };
  struct alignas(128) Lane {
    std::vector<Note> notes;
    u64 lost = 0;
  };
  static u64 nanoseconds() {
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return u64(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
  }
  static Point now() { return {ticks(), nanoseconds()}; }

  // Returns a worker's notes as events. A worker takes its instructions in order, each as soon as it is through with
  // the one before.
  std::vector<TraceEvent> events(u32 worker) const {
    const u64 ticks = end_.ticks - begin_.ticks;
    const double scale = ticks > 0 ? double(end_.nanoseconds - begin_.nanoseconds) / double(ticks) : 0;
    const auto at = [&](u64 tick) {  // nanoseconds since the run began
      return tick > begin_.ticks ? u64(double(tick - begin_.ticks) * scale) : 0;
    };
    const size_t in_step = program_.workers[worker].size() - 1;
    std::vector<TraceEvent> events;
    for (const Note& note : lanes_[worker].notes) {
      const size_t n = events.size();
      events.push_back({.fetched = n > 0 ? events.back().done : 0,
                        .ready = at(note.ready),
                        .computed = at(note.computed),
                        .done = at(note.done),
                        .instruction = u32(n % in_step),
                        .epoch = first_epoch_ + u32(n / in_step),
                        .dead = u32(note.computed & 1)});
    }
    return events;
  }

  const Program& program_;
  u32 threads_, capacity_, first_epoch_ = 0;
  std::vector<Lane> lanes_;
  Point begin_, end_;
};

}  // namespace heddle
