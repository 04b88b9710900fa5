// The instruction: 64 bytes, little-endian, the same on every executor. Read by host and device.
// Invariants (ir/check proves them): a counter has one group of producers and is waited for only in full;
// target = the sum of its producers' amounts in one step; a run compares with target * epoch (the wait means
// this step) or target * (epoch - 1) (it means the previous one), wrap-safe; nothing is cleared between
// steps.
#pragma once

#include "heddle/base/types.h"

namespace heddle {

constexpr u16 kEndOpcode = 0xffff;           // ends a worker's stream
constexpr u16 kNopOpcode = 0xfffe;           // waits, then signals; no work
constexpr u32 kNoCounter = 0xffffffffu;      // an unused wait or signal
constexpr u32 kItemsFromStep = 0xffffffffu;  // stream_items that follow from the step record
constexpr u32 kItemsFromData = 0xfffffffeu;  // and from the inputs: the loader waits for them
constexpr int kMaxWaits = 3;

// How an edge is carried on a GPU; the CPU executors count every kind.
enum class EdgeKind : u8 {
  kInSm,     // producers and waiter are one worker: a barrier in shared memory
  kCluster,  // producers and waiter are in one cluster: distributed shared memory
  kTagged,   // the data's own words carry a tag that the reader polls; carries no other data
  kCounted,  // red.release after the writes, ld.acquire by the reader
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
  u32 tag = 0;           // trace tag: the graph node's index

  // flags: bits 0-1, 2-3, 4-5 kind of each wait; 6-7 kind of the signal; 8-10 wait means the previous
  // step; 11 tap.
  EdgeKind wait_kind(int i) const { return EdgeKind((flags >> (2 * i)) & 3); }
  EdgeKind signal_kind() const { return EdgeKind((flags >> 6) & 3); }
  bool waits_previous(int i) const { return (flags >> (8 + i)) & 1; }
  bool tapped() const { return (flags >> 11) & 1; }
  void set_wait_kind(int i, EdgeKind kind) {
    flags = u16((flags & ~(3u << (2 * i))) | (u32(kind) << (2 * i)));
  }
  void set_signal_kind(EdgeKind kind) { flags = u16((flags & ~(3u << 6)) | (u32(kind) << 6)); }
  void set_previous(int i, bool on) { flags = u16((flags & ~(1u << (8 + i))) | (u32(on) << (8 + i))); }
  void set_tapped(bool on) { flags = u16((flags & ~(1u << 11)) | (u32(on) << 11)); }
};
static_assert(sizeof(Instruction) == 64);

// What a counter must have reached before a wait may pass in the step numbered `epoch` (1, 2, ...).
inline u32 wanted_count(u32 target, u32 epoch, bool previous) {
  return target * (previous ? epoch - 1 : epoch);
}
// Wrap-safe: true when `seen` is at or past `wanted`.
inline bool reached(u32 seen, u32 wanted) {
  return i32(seen - wanted) >= 0;
}

}  // namespace heddle
