// Shared memory of a kernel that has no other than what its launch gives it.
#pragma once

#include "heddle/backend/cuda/arch/common.cuh"

namespace heddle::device {

// The dynamic shared memory of the launch, from a multiple of 1,024 bytes on.
inline arch::OnChip chip() {
  extern __shared__ __align__(1024) u8 whole_kernel_chip[];
  return arch::on_chip(whole_kernel_chip);
}

}  // namespace heddle::device
