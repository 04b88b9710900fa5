// The file of a whole kernel (x_kernel.sm80.cuh, ir/kernel.h) may use this and arch/. The frame of a call includes this, and then
// such a file once, inside this namespace: it includes nothing, or files of its folder that are written for that place. Of a kernel
// in Python the includes stand ahead of the namespace (python/heddle/kernel.py says which it may have). It has
//   struct KernelConfig           defaults of the constants that the op's plan names
//   template <class Config>       Config: those constants, and `types()`: arguments with the dtypes, ranks and orders of the call
//   struct Kernel {
//     static constexpr u32 kThreads;  of a CTA; optional: kCtas, how many of them a multiprocessor must hold
//     static void run(const X& args, const TensorMap* maps, u8* workspace);
//   }
// The maps are those of the plan, in order; they lie in the kernel's parameters.
#pragma once

#include "heddle/kit/arch/tensor_map.h"
#include "heddle/kit/move/next_tile.cuh"
#include "heddle/kit/move/store_pair.cuh"
#include "heddle/kit/rows/row_kernel.cuh"
#include "heddle/kit/rows/row_share.cuh"
#include "heddle/kit/rows/rows_ahead.cuh"

namespace heddle::device {

#include "heddle/tile/math.cuh"

template <class Launch>
constexpr u32 ctas_of() {
  if constexpr (requires { Launch::kCtas; })
    return Launch::kCtas;
  else
    return 1;
}

inline u32 lane() {
  return threadIdx.x % 32;
}

}  // namespace heddle::device
