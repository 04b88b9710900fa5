// Writes the device source of a whole kernel (ir/kernel.h).
#pragma once

#include <string>

#include "heddle/ir/op.h"

namespace heddle::cuda {

// The source: a kernel `launch0`, `launch1`, ... for each launch of the plan. It depends on dtypes, the plan's constants and the
// names of its launches, never on sizes, and is the same for every architecture. Throws Error(kInternal) where the op has no such
// file.
std::string kernel_source(const OpSpec& op, const std::byte* args, const KernelPlan& plan);

// That source in two parts, so that one text can have the kernels of several plans: what the plans of an op have in common,
// once, and what one plan adds, with its kernels called `launch0`, ... after `prefix`.
struct KernelText {
  std::string common, own;
};
KernelText kernel_text(const OpSpec& op, const std::byte* args, const KernelPlan& plan,
                       const std::string& prefix);

// The name of the code that runs: "matmul_kernel.sm90".
std::string kernel_name(const OpSpec& op, const KernelPlan& plan);

// The facts of an architecture that heddle knows, with the multiprocessors of a model that has it.
KernelTarget kernel_target_of(const std::string& arch);

}  // namespace heddle::cuda
