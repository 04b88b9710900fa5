// Compiles every tile body of the tree for architectures that need not be here, and compares what each takes with a
// budget.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heddle/ir/executor/device_code.h"

namespace heddle::cuda {

// The limits of what a kernel may take. The default allows nothing off chip.
struct Budget {
  int registers = 255;          // a thread; above it the compiler spills
  int shared_bytes = 48 << 10;  // static, a CTA: what every architecture has
  int stack_bytes = 0;          // a thread
  int spill_bytes = 0;          // a thread, stores and loads together
};

// Lists what is over the budget, with the values; empty: nothing.
std::string over_budget(const KernelUse& use, const Budget& budget);

// Checks bodies as DeviceCompiler says. An op that can have others around it is compiled with a prologue and all
// epilogues. Throws Error(kInternal) where the compiler takes what cannot run on a GPU: its results would prove
// nothing.
std::vector<BodyCheck> check_bodies(std::span<const std::string> archs, const BodyCheckOptions& options = {});

}  // namespace heddle::cuda
