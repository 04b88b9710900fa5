// The weight ring: the loader fills slots before the instructions need them, and consumers empty them in the same order.
// A weight's panels travel as *items*, one per slot: some whole panels, or a part of a panel that is larger than a slot. Both sides
// cut panels by `Items`, so they agree without a message.
#pragma once

#include "heddle/backend/cuda/device/params.h"
#include "heddle/backend/cuda/device/view.cuh"
#include "heddle/ir/product.h"
#include "heddle/kit/arch/on_chip.cuh"

namespace heddle::device {

constexpr i32 kStreamPanelRows = 2;              // the layout of panels that matvec reads
constexpr i32 kStreamWord = 16;                  // contiguous bytes of one row in a panel
constexpr i32 kPartBytes = i32(kRingSlotBytes);  // the largest part of a panel, without the scales of codes
constexpr i32 kGroupPanels = 8, kCodeGroupPanels = 16;  // panels that are multiplied together, at most
constexpr i32 kGroupSlots = 4;                          // slots that they lie in, at most

// A kernel that has a ring serves tiles of a few rows through it, or all tiles.
constexpr ProductKernel kRingKernel{.ring_rows = kManyRows ? kStreamRows : 0x7fffffff};

// True if a tile of `rows` rows gets the weight's panels through the ring.
inline bool uses_ring(const Weight& w, i32 rows) {
  return kDraws || product_path(w, {.rows = rows}, kRingKernel) == ProductPath::kRing;
}

// True: each thread that has read a slot of the ring or the queue arrives at its barrier itself. One arrival for all, after a barrier
// of all, is as right and faster. But racecheck orders only threads that arrive themselves, so it reports hazards then.
constexpr bool kEveryReaderArrives = false;

// The barriers of a ring, in shared memory.
struct RingBarriers {
  u64 full[kMaxRingSlots], empty[kMaxRingSlots];
};

// One side's place in the ring.
struct RingCursor {
  arch::OnChip data, barriers;
  u32 slots;
  u32 slot = 0, phase = 0;

  arch::OnChip bytes() const { return data + slot * kSlotBytes; }
  arch::OnChip full() const { return barriers + slot * u32(sizeof(u64)); }
  arch::OnChip empty() const { return full() + u32(sizeof(RingBarriers::full)); }
  void wait_full() const {
    while (!arch::barrier_passed(full(), phase)) {
    }
  }
  void advance() {
    if (++slot == slots) slot = 0, phase ^= 1;
  }
  // The cursor `count` slots further on; at most all of them.
  RingCursor ahead(u32 count) const {
    RingCursor next = *this;
    next.slot += count;
    if (next.slot >= slots) next.slot -= slots, next.phase ^= 1;
    return next;
  }
};

// True if a slot holds one panel at most: such panels are multiplied four at a time.
constexpr bool has_long_panels(const Weight& w) {
  return 8 * ((w.cols() + 7) / 8 * 8) > kPartBytes;
}

// The cut of a weight into items.
struct Items {
  i64 panel_bytes;
  i32 panels = 1;  // panels of an item: a power of two, so that a group begins with an item
  i32 log_panels = 0;
  i32 part;       // bytes of a part of a panel, but for the last one
  i32 parts;      // parts of a panel
  i32 group = 1;  // panels that are multiplied together: one part of all of them comes after the other

  Items(const Weight& w, u32 slots)
      : panel_bytes(w.panel_bytes()),
        part(kPartBytes),
        parts(i32((panel_bytes + kPartBytes - 1) / kPartBytes)) {
    i64 floats = panel_bytes;  // bytes of a panel without scales: slots have room for these
    if (kReadsCodes && w.is_coded()) {
      const CodePanel codes = w.code_panel();
      part = codes.part_bytes(0), parts = codes.parts(), floats = codes.code_bytes(0);
    }
    while (panels < kItemPanels && 2 * panels * floats <= kPartBytes) panels *= 2, ++log_panels;
    const i32 at_once = panels * min(i32(slots), kGroupSlots);
    const i32 most = min(at_once, w.data.dtype != DType::kBf16 ? 2
                                  : w.is_coded()               ? kCodeGroupPanels
                                  : has_long_panels(w)         ? 4
                                                               : kGroupPanels);
    while (2 * group <= most) group *= 2;
  }
  i32 part_bytes(i32 number) const { return min(part, i32(panel_bytes) - number * part); }
  // Where panel `panel` of a group has its `bytes` of a part, if the group begins after `inside` panels of the slot.
  arch::OnChip place(const RingCursor& ring, i32 inside, i32 panel, i32 bytes) const {
    const i32 at = inside + panel;
    return ring.ahead(u32(at >> log_panels)).bytes() + u32((at & (panels - 1)) * bytes);
  }
};

// Gives `count` slots of a warp back and goes on to the next. All lanes call it.
inline void release_slots(RingCursor& ring, u32 count, u32 lane) {
  __syncwarp();
  if (kEveryReaderArrives)
    for (u32 i = 0; i < count; ++i) arch::arrive(ring.ahead(i).empty());
  else if (lane < count)
    arch::arrive(ring.ahead(lane).empty());
  ring = ring.ahead(count);
}

// The number of copies that may be under way. They form a queue to the memory, in which messages between
// workers wait too: with 176 KB of copies per worker a message takes 1.5 us, with 32 KB 0.46 us. While no
// consumer waits for a message, more copies stream faster: a step of a 1B took 0.84 ms with 128 KB, 0.86 with
// 64 KB (H200, Nov 2026).
struct InFlight {
  u32 most, most_waiting;
  const volatile u32* waits;  // not 0 while consumers wait for other workers; null: never

  u32 now() const { return waits && *waits ? most_waiting : most; }
};

// The loader's side, which a body's `stream` gets as its block.
class Loader {
 public:
  // alone: not 0 once the consumers have left; null: they stay to the end.
  Loader(const RingCursor& ring, const InFlight& in_flight, const volatile u32* alone)
      : ring_(ring), landed_(ring), in_flight_(in_flight), alone_(alone) {}

  // Call it before each tile, which has `rows` live rows.
  void begin(i32 rows) { rows_ = rows; }
  const StepHost& host(const Tensor& tensor) { return *reinterpret_cast<const StepHost*>(tensor.data); }
  const i32* ints(const Tensor& tensor) { return reinterpret_cast<const i32*>(tensor.data); }
  // Copies panels [first, last), which lie one after the other.
  void panels(const Weight& w, i32 first, i32 last) {
    if (!uses_ring(w, rows_)) return;
    const Items items(w, ring_.slots);
    const i32 step = max(items.group, items.panels);
    for (i32 begin = first; begin < last; begin += step)
      for (i32 part = 0; part < items.parts; ++part)
        for (i32 panel = begin; panel < min(begin + step, last) && !stopped_; panel += items.panels)
          copy(w.data.data + panel * items.panel_bytes + i64(part) * items.part,
               u32(items.part_bytes(part)) * u32(min(items.panels, last - panel)));
  }
  // Call it after each tile. False: the consumers have left.
  bool finish() const { return !stopped_; }
  // Waits for all copies: a CTA must not end before the copies to it.
  void land() {
    for (; flying_ > 0; --flying_) {
      landed_.wait_full();
      landed_.advance();
    }
  }

 private:
  void copy(const u8* from, u32 bytes) {
    if (!wait_empty()) return;
    for (; flying_ >= in_flight_.now(); --flying_) {
      landed_.wait_full();
      landed_.advance();
    }
    ++flying_;
    arch::copy_to_slot(ring_.bytes(), from, bytes, ring_.full());
    ring_.advance();
  }
  bool wait_empty() {
    while (!stopped_ && !arch::barrier_passed(ring_.empty(), ring_.phase ^ 1))
      stopped_ = alone_ && arch::look_at(*alone_) != 0;
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
