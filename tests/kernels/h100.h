// An H100, as whole kernels see it.
#pragma once

#include "heddle/backend/cuda/program/kernel_source.h"

namespace heddle {

inline const KernelTarget& h100() {
  static const KernelTarget target = cuda::kernel_target_of("sm_90a");
  return target;
}

}  // namespace heddle
