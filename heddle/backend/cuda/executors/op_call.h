// Ops by themselves on a GPU: one launch of a kernel of the op, on the caller's stream, in the context of that stream or,
// on the default one, in the caller's. Kernels are compiled for dtypes and the form of panels, not for sizes, and are
// loaded once for each context.
#pragma once

#include "heddle/ir/call/op_call.h"

namespace heddle::cuda {

// Throws Error(kUnsupported) where no GPU can be used.
OpCaller& op_calls();

}  // namespace heddle::cuda
