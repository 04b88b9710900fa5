// The kernels that tests launch.
#pragma once

#include "heddle/backend/cuda/compiler/jit.h"

namespace heddle::cuda {

inline constexpr const char* kTestKernels = R"(
#include "heddle/base/types.h"
using namespace heddle;

extern "C" __device__ float factor = 1;

extern "C" __global__ void saxpy(float a, const float* x, float* y, u32 n) {
  const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = factor * a * x[i] + y[i];
}

// One step of a chain in which the order of steps matters. It asks for the next kernel before it waits for the one
// ahead, so that a launch that forgot to wait would be seen.
extern "C" __global__ void chain(u32* x, u32 step) {
#if HOPPER_OR_LATER
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  for (int i = 0; i < 100; ++i) __nanosleep(20);
  x[blockIdx.x * blockDim.x + threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x] * 3 + step;
}

// Runs until the host says so.
extern "C" __global__ void wait_for(volatile u32* flag, volatile u32* seen) {
  while (*flag == 0) __nanosleep(100);
  *seen = *flag + 1;
}

extern "C" __global__ void use_shared(u32* out, u32 words) {
  extern __shared__ u32 memory[];
  for (u32 i = threadIdx.x; i < words; i += blockDim.x) memory[i] = i;
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = memory[words - 1];
}

extern "C" __global__ void mark_ctas(u32* out) { out[blockIdx.x] = blockIdx.x; }

extern "C" __global__ void write_at(u32* address) { *address = 1; }
)";

inline CompileRequest test_kernels(const std::string& arch) {
  const bool old = arch.starts_with("sm_8");
  return {"test kernels", kTestKernels, arch, {old ? "-DHOPPER_OR_LATER=0" : "-DHOPPER_OR_LATER=1"}};
}

}  // namespace heddle::cuda
