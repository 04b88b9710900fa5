// Roles of the warps of a whole kernel: each has groups of four warps, and registers that move between them.
#pragma once

#include "heddle/kit/arch/thread.cuh"
#include "heddle/tile/budget.h"

namespace heddle::device {

// Takes the registers of a role of Kernel::kBudget, or gives away the others; all threads of the role call it. A launch gives each
// thread the same number.
template <class Kernel, tile::Name kRole>
inline void enter() {
  static_assert(Kernel::kBudget.parted && Kernel::kBudget.fits());
  constexpr u32 kRegisters = Kernel::kBudget.registers_of(kRole);
  if constexpr (kRegisters > u32(Kernel::kBudget.launch_registers()))
    arch::take_registers<kRegisters>();
  else
    arch::give_registers<kRegisters>();
}

template <u32 kThreadsOfRole, u32 kRegistersOfThread>
struct Role {
  static constexpr u32 kThreads = kThreadsOfRole, kRegisters = kRegistersOfThread;
  static_assert(kThreads % 128 == 0, "registers move between groups of four warps");
  static_assert(kRegisters % 8 == 0 && kRegisters >= 24 && kRegisters <= 240);
};

// The roles of a CTA that has a multiprocessor to itself, in the order of its warps. A launch gives each thread the same number of
// registers; a kernel that asked for more than all of them together would wait forever.
template <class... All>
struct Roles {
  static constexpr u32 kThreads = (0 + ... + All::kThreads);
  static constexpr u32 kAtLaunch = 65536 / kThreads / 8 * 8 < 255 ? 65536 / kThreads / 8 * 8 : 248;
  static_assert((0 + ... + (All::kThreads * All::kRegisters)) <= kThreads * kAtLaunch,
                "the roles take more registers than the launch has");

  // Takes or gives registers; all threads of the role call it.
  template <class Mine>
  static void enter() {
    if constexpr (Mine::kRegisters > kAtLaunch)
      arch::take_registers<Mine::kRegisters>();
    else
      arch::give_registers<Mine::kRegisters>();
  }
};

}  // namespace heddle::device
