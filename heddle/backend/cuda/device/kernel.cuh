// What the file of a whole kernel (x_kernel.sm90.cuh, ir/kernel.h) may use. Such a file is included once, inside this namespace,
// and includes nothing itself. It has
//   struct KernelConfig           defaults of the constants that the op's plan names
//   template <class Config>       Config: those constants, and `types()`: arguments with the dtypes, ranks and orders of the call
//   struct Kernel {
//     static constexpr u32 kThreads;  of a CTA; optional: kCtas, how many of them a multiprocessor must hold
//     static void run(const X& args, const TensorMap* maps, u8* workspace);
//   }
// The maps are those of the plan, in order; they lie in the kernel's parameters. A file for sm_80 uses value.cuh and arch/ alone.
#pragma once

#include "heddle/backend/cuda/arch/matrices.cuh"
#include "heddle/backend/cuda/device/tensor_map.h"
#include "heddle/backend/cuda/device/value.cuh"

#if __CUDA_ARCH__ >= 900
#include "heddle/backend/cuda/arch/bulk.cuh"
#include "heddle/backend/cuda/arch/cluster.cuh"
#include "heddle/backend/cuda/arch/mbarrier.cuh"
#endif
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#include "heddle/backend/cuda/arch/wgmma_products.cuh"
#include "heddle/backend/cuda/device/roles.cuh"
#include "heddle/backend/cuda/device/slot_ring.cuh"
#include "heddle/backend/cuda/device/store_tile.cuh"
#include "heddle/backend/cuda/device/turns.cuh"
#endif

namespace heddle::device {

#include "heddle/tile/math.cuh"

template <class Launch>
constexpr u32 ctas_of() {
  if constexpr (requires { Launch::kCtas; })
    return Launch::kCtas;
  else
    return 1;
}

// The dynamic shared memory of the launch, from a multiple of 1,024 bytes on. A whole kernel has no other.
inline arch::OnChip chip() {
  extern __shared__ __align__(1024) u8 whole_kernel_chip[];
  return arch::on_chip(whole_kernel_chip);
}

inline u32 lane() {
  return threadIdx.x % 32;
}

}  // namespace heddle::device
