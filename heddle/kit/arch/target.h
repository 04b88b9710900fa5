// Says which devices the kernels for sm_90a run on.
#pragma once

#include <string>

#include "heddle/ir/kernel.h"

namespace heddle {

// Returns why a device runs no kernel for sm_90a, whose bulk copies take tensor maps, or "" if it runs them.
inline std::string why_not_sm90(const KernelTarget& target) {
  if (target.arch == 90 && target.tensor_maps) return {};
  return "it is for compute capability 9.0 with tensor maps";
}

}  // namespace heddle
