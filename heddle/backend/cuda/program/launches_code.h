// Which code each call of a program runs where it goes call by call: a kernel of tiles, one for each opcode, or the whole kernel of
// its main op (OpSpec::chain_kernel).
#pragma once

#include <string>
#include <vector>

#include "heddle/backend/cuda/compiler/jit.h"
#include "heddle/ir/executor.h"
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

// How calls run on a device of `arch`. Its tensor maps are left out where it has none.
LaunchesCode launches_code(const Program& program, const std::string& arch, bool tensor_maps,
                           Knowledge knowledge);
// The plan of one call.
KernelPlan chain_plan(const Program& program, const Call& call, const std::string& arch, bool tensor_maps);
// A line for each kind of call whose main op has a whole kernel: which constants it has, or why it does not run.
std::vector<std::string> body_lines(const Program& program, const LaunchesCode& code);

}  // namespace heddle::cuda
