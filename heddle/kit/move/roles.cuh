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

}  // namespace heddle::device
