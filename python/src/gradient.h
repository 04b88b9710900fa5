// Calls with a gradient: which way they take, and the backward that each way has heddle run.
#pragma once

#include <nanobind/nanobind.h>

#include "python/src/call.h"

namespace heddle::python {

// A call with an input that requires a gradient. Its outputs get a node of torch's autograd in C++ where the library of
// nodes is loaded (heddle/torch/node.py) and autograd alone looks at the call; heddle.torch makes all other calls.
PyObject* call_with_gradient(OpEntry& entry, const Given& given);

void add_gradients(nanobind::module_& module);

}  // namespace heddle::python
