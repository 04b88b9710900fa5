// The instruction: 64 bytes, little-endian, the same on every executor. Host and device include it.
// Invariants, which ir/check proves: a counter has one group of producers, and waits for it are for its full
// count; target = the sum of its producers' amounts in one step; a run compares with target * epoch (the wait
// means this step) or target * (epoch - 1) (it means the previous one), wrap-safe; counters are not cleared
// between steps.
#pragma once

#include "heddle/base/types.h"

namespace heddle {

constexpr u16 kEndOpcode = 0xffff;       // ends a worker's stream
constexpr u16 kNopOpcode = 0xfffe;       // waits, then signals; does no work
constexpr u32 kNoCounter = 0xffffffffu;  // an unused wait or signal
constexpr u32 kItemsFromData =
    0xffffffffu;  // the number of stream_items depends on the inputs; the loader waits for them
constexpr int kMaxWaits = 3;

// The way a GPU implements an edge. CPU executors use a counter for every kind.
enum class EdgeKind : u8 {
  kInSm,     // producers and waiter are one worker, so the order of its stream suffices
  kCounted,  // the producer writes, then red.release; the reader uses ld.acquire
};

struct Wait {
  u32 counter = kNoCounter;
  u32 target = 0;
};

struct Signal {
  u32 counter = kNoCounter;
  u32 amount = 0;
};

struct Instruction {
  u16 opcode = kEndOpcode;
  u16 flags = 0;  // see below
  u32 call = 0;   // index of the call record
  i32 tile[4] = {};
  Wait waits[kMaxWaits];
  Signal signal;
  u32 stream_items = 0;  // items of the worker's stream that this instruction consumes
  u32 reserved = 0;

  // Flags: bits 0-2 are the kinds of the waits, bit 3 is the kind of the signal, bits 4-6 say that a wait
  // means the previous step.
  static constexpr int kFlagBits = 7;
  EdgeKind wait_kind(int i) const { return EdgeKind(flag(i)); }
  EdgeKind signal_kind() const { return EdgeKind(flag(kMaxWaits)); }
  bool waits_previous(int i) const { return flag(kMaxWaits + 1 + i); }
  void set_wait_kind(int i, EdgeKind kind) { set_flag(i, kind == EdgeKind::kCounted); }
  void set_signal_kind(EdgeKind kind) { set_flag(kMaxWaits, kind == EdgeKind::kCounted); }
  void set_previous(int i, bool on) { set_flag(kMaxWaits + 1 + i, on); }

 private:
  bool flag(int bit) const { return (flags >> bit) & 1; }
  void set_flag(int bit, bool on) { flags = u16((flags & ~(1u << bit)) | (u32(on) << bit)); }
};
static_assert(sizeof(Instruction) == 64);

// The value that a counter must reach before a wait may pass in the step numbered `epoch` (1, 2, ...).
inline u32 wanted_count(u32 target, u32 epoch, bool previous) {
  return target * (previous ? epoch - 1 : epoch);
}
// Wrap-safe: true when `seen` is at or past `wanted`.
inline bool reached(u32 seen, u32 wanted) {
  return i32(seen - wanted) >= 0;
}

}  // namespace heddle
