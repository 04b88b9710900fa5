// Matrix kernels over bf16 operands for instruction sets that Highway does not cover, each with its probe. A
// kernel may be called only where its probe says true.
#pragma once

#include "heddle/backend/cpu/arch/matrix.h"

namespace heddle {

bool has_avx512_bf16();
MatrixKernel avx512_bf16_kernel();

bool has_amx_bf16();
MatrixKernel amx_bf16_kernel();

}  // namespace heddle
