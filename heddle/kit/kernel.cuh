// Begins the file of a whole kernel (x_kernel.sm80.cuh, x_kernel.sm90.cuh; ir/kernel.h). Such a file includes what it uses of
// kit/ and tile/, compiles by itself, and has in heddle::device::x
//   struct KernelConfig           defaults of the constants that the op's plan names
//   template <class Config>       Config: those constants, and `types()`: arguments with the dtypes, ranks and orders of the call
//   struct Kernel {
//     static constexpr u32 kThreads;  of a CTA; optional: kCtas, how many of them a multiprocessor must hold
//     static void run(const X& args, const TensorMap* maps, u8* workspace);
//   }
// The maps are those of the plan, in order; they lie in the kernel's parameters.
#pragma once

#include "heddle/kit/arch/tensor_map.h"
#include "heddle/kit/value/math.cuh"

namespace heddle::device {

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
