// A product's walk over the panels that a tile draws from the ring. It goes by groups of panels that are multiplied together; if
// panels are longer than a slot, by one part after the other of all panels of the group. The walk computes all that it can, and
// tests whether the first panels are there, before the product has its operand.
#pragma once

#include "heddle/backend/cuda/device/ring_wait.cuh"
#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/arch/thread.cuh"

namespace heddle::device {

// Tells the compiler that a value is the same in all lanes of a warp: the addresses of barriers then need no loop over the lanes.
inline u32 uniform(u32 value) {
  return __shfl_sync(~0u, value, 0);
}
inline RingCursor uniform(const RingCursor& ring) {
  RingCursor same = ring;
  arch::forget(same.data), arch::forget(same.barriers);
  same.slot = uniform(ring.slot), same.phase = uniform(ring.phase);
  return same;
}

class PanelWalk {
 public:
  __forceinline__ PanelWalk(const RingCursor& ring, const Weight& w, i32 columns)
      : ring_(uniform(ring)), items_(w, ring.slots), panels_((columns + 1) / 2), lane_(arch::thread() % 32) {
    are_there_ = panels_are_there(ring_, slots(), lane_);
  }

  const RingCursor& ring() const { return ring_; }
  // The first panel of the group, and the number of its panels.
  i32 panel() const { return panel_; }
  i32 live() const { return min(items_.group, panels_ - panel_); }
  // The part's number, where it begins in a panel, and how many bytes of a panel it has.
  i32 part() const { return part_; }
  i32 begin() const { return part_ * items_.part; }
  i32 bytes() const { return items_.part_bytes(part_); }
  // Where the part of panel `panel` of the group lies. Past the end it is the last panel's.
  __forceinline__ arch::OnChip place(i32 panel) const {
    return items_.place(ring_, inside_, min(panel, live() - 1), bytes());
  }

  // True if all parts of all panels are multiples of so many bytes.
  bool is_multiple(i32 bytes) const { return items_.panel_bytes % bytes == 0; }

  // Waits until the part is there.
  __forceinline__ void wait() {
    if (inside_ == 0 && !are_there_) wait_for_panels(ring_, slots(), lane_);
    are_there_ = false;
  }
  // Gives the multiplied part back and goes on to the next. True: the next part belongs to another group.
  __forceinline__ bool next() {
    inside_ += items_.group;
    if (inside_ >= items_.panels || panel_ + items_.group >= panels_) {
      inside_ = 0;
      release_slots(ring_, slots(), lane_);
    }
    if (++part_ < items_.parts) return false;
    part_ = 0, panel_ += items_.group;
    return true;
  }

 private:
  u32 slots() const { return u32((live() + items_.panels - 1) >> items_.log_panels); }

  RingCursor ring_;
  Items items_;
  i32 panels_;
  u32 lane_;
  i32 panel_ = 0, part_ = 0;
  i32 inside_ = 0;  // panels of the slot before the group
  bool are_there_;  // an earlier test found the group's panels there
};

}  // namespace heddle::device
