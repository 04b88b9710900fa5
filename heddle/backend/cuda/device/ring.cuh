// The weight ring: the loader fills slots ahead of the instructions, consumers empty them in the same order.
// A weight's panels travel as *items*: some whole panels, or a part of one that is larger than a slot.
#pragma once

#include "heddle/backend/cuda/device/params.h"
#include "heddle/ir/tensor.h"

namespace heddle::device {

constexpr i32 kStreamPanelRows = 2;  // the layout of panels that matvec reads
constexpr i32 kStreamWord = 16;      // bytes of one row side by side
constexpr i32 kItemPanels = 16;      // of an item at most

// How a weight is cut in items: both sides of the ring must agree.
struct Items {
  i64 panel_bytes;
  i32 panels;  // of an item; a power of two, so that what consumers take at once begins with an item
  i32 parts;   // of a panel that is larger than a slot, else 1

  explicit Items(const Weight& w) : panel_bytes(w.panel_bytes()), panels(1), parts(1) {
    while (panels < kItemPanels && 2 * panels * panel_bytes <= kRingSlotBytes) panels *= 2;
    parts = i32((panel_bytes + kRingSlotBytes - 1) / kRingSlotBytes);
  }
};

// Whether the panels of a tile of so many rows go through the ring.
inline bool streams(const Weight& w, i32 rows) {
  return rows <= kStreamRows && w.panel_rows == kStreamPanelRows && w.slices() == 1 &&
         w.interleave * size_of(w.data.dtype) == kStreamWord;
}

// The barriers of a ring, in shared memory.
struct RingBarriers {
  u64 full[kMaxRingSlots], empty[kMaxRingSlots];
};

// One side's place in the ring.
struct RingCursor {
  u8* data;
  RingBarriers* barriers;
  u32 slots;
  u32 slot = 0, phase = 0;

  u8* bytes() const { return data + u64(slot) * kRingSlotBytes; }
  u64* full() const { return &barriers->full[slot]; }
  u64* empty() const { return &barriers->empty[slot]; }
  bool is_full() const { return arch::barrier_is_past(full(), phase); }
  void wait_full() const {
    while (!arch::barrier_passed(full(), phase)) {
    }
  }
  void advance() {
    if (++slot == slots) slot = 0, phase ^= 1;
  }
};

// Gives a warp's slot back and goes on to the next.
inline void release_slot(RingCursor& ring) {
  __syncwarp();
  if (arch::thread() % 32 == 0) arch::arrive(ring.empty());
  ring.advance();
}

// How many copies may be under way. What is on its way is a queue before the memory in which every message between
// workers waits too: 176 KB of a worker cost a message 1.5 us, 32 KB cost it 0.46 us, and 64 KB stream at full speed
// (H200, Nov 2026).
struct InFlight {
  u32 most, most_waiting;
  const volatile u32* waits;  // not 0 while consumers wait for other workers; null: never

  u32 now() const { return waits && *waits ? most_waiting : most; }
};

// The loader's side: what a body's `stream` is given.
class Loader {
 public:
  // `alone`: not 0 once the consumers have left; null: they stay to the end.
  Loader(const RingCursor& ring, const InFlight& in_flight, const volatile u32* alone)
      : ring_(ring), landed_(ring), in_flight_(in_flight), alone_(alone) {}

  // Before each tile: `rows` live rows.
  void begin(i32 rows) { rows_ = rows; }
  const StepHost& host(const Tensor& tensor) { return *reinterpret_cast<const StepHost*>(tensor.data); }
  const i32* ints(const Tensor& tensor) { return reinterpret_cast<const i32*>(tensor.data); }
  // Panels [first, last), which lie one after the other.
  void panels(const Weight& w, i32 first, i32 last) {
    if (!streams(w, rows_)) return;
    const Items items(w);
    for (i32 panel = first; panel < last && !stopped_; panel += items.panels)
      copy(w.data.data + panel * items.panel_bytes, min(items.panels, last - panel) * items.panel_bytes);
  }
  // After each tile. False: the consumers have left.
  bool finish() const { return !stopped_; }

 private:
  void copy(const u8* from, i64 left) {
    for (; left > 0; left -= kRingSlotBytes, from += kRingSlotBytes) {
      if (!wait_empty()) return;
      for (; flying_ >= in_flight_.now(); --flying_) {
        landed_.wait_full();
        landed_.advance();
      }
      ++flying_;
      arch::copy_to_slot(ring_.bytes(), from, u32(left < kRingSlotBytes ? left : kRingSlotBytes),
                         ring_.full());
      ring_.advance();
    }
  }
  bool wait_empty() {
    while (!stopped_ && !arch::barrier_passed(ring_.empty(), ring_.phase ^ 1))
      stopped_ = alone_ && *alone_ != 0;
    return !stopped_;
  }

  RingCursor ring_, landed_;  // the next copy; the oldest that may be under way
  InFlight in_flight_;
  u32 flying_ = 0;  // slots from landed_ to ring_
  const volatile u32* alone_;
  i32 rows_ = 0;
  bool stopped_ = false;
};

}  // namespace heddle::device
