// The GPU architectures and models that heddle knows: the one table of them.
#pragma once

#include <span>
#include <string>

#include "heddle/base/types.h"

namespace heddle::cuda {

struct Arch {
  const char* name;  // as NVRTC has it: "sm_90a"
  i32 shared_kb;     // what a CTA can have on chip
};

// A model that programs can be made for where there is none.
struct GpuModel {
  const char* name;
  const char* arch;
  i32 multiprocessors;
};

std::span<const Arch> known_archs();
std::span<const GpuModel> known_models();

std::string known_arch_names();  // "sm_80, sm_89, ..."
// Throws Error(kInvalidArgument) for a name that is not in the table.
void require_known_arch(const std::string& name);
// The entry of an architecture, or the newest known one of its generation: code for sm_89 runs on sm_86. Throws
// Error(kUnsupported) where no generation fits.
const Arch& arch_of(const std::string& name);

}  // namespace heddle::cuda
