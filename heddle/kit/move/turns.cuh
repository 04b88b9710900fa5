// Turns of groups of four warps, one after the other: at the tensor cores, so that one group multiplies while another computes.
#pragma once

#include "heddle/kit/arch/thread.cuh"

namespace heddle::device {

// Group g waits at named barrier kFirst + g, where the group before it arrives.
template <u32 kFirst, u32 kGroups>
class Turns {
 public:
  static_assert(kFirst >= 1 && kFirst + kGroups <= 16 && kGroups >= 2);

  // A group's turn, which ends with the object. It cannot be copied, and so not be given back twice.
  class [[nodiscard]] Turn {
   public:
    explicit Turn(u32 group) : group_(group) { wait(kFirst + group); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() { pass_on(group_); }

   private:
    u32 group_;
  };

  // The last group calls it once, before its first turn: the first group may begin.
  static void open(u32 group) {
    if (group == kGroups - 1) pass_on(group);
  }
  static Turn take(u32 group) { return Turn(group); }

 private:
  static void wait(u32 barrier) { arch::sync_threads<256>(barrier); }
  static void pass_on(u32 group) { arch::arrive_threads<256>(kFirst + (group + 1) % kGroups); }
};

}  // namespace heddle::device
