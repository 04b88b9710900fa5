// Which code each call of a program runs where it goes call by call: a kernel of tiles, one for each opcode, or the whole kernel of
// its main op (OpSpec::chain_kernel).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heddle/backend/cuda/compiler/jit.h"
#include "heddle/ir/executor/executor.h"
#include "heddle/ir/kernel.h"

namespace heddle::cuda {

struct CallCode {
  size_t request = 0;  // its kernel is named `call`
  KernelPlan plan;     // without a launch: tile by tile, and why, where the op has a whole kernel
};

struct LaunchesCode {
  std::vector<CompileRequest> requests;
  std::vector<CallCode> calls;
};

// Describes how calls run on a device of `arch`. Its tensor maps are left out where it has none.
LaunchesCode launches_code(const Program& program, const std::string& arch, bool tensor_maps,
                           Knowledge knowledge);
// The plan of one call.
KernelPlan chain_plan(const Program& program, const Call& call, const std::string& arch, bool tensor_maps);
// Says what runs each call (Executor::bodies).
std::vector<std::string> bodies_of(const Program& program, std::span<const CallCode> calls);
// Says it for a device that need not be there.
std::vector<std::string> bodies_on(const Program& program, const std::string& arch);

}  // namespace heddle::cuda
