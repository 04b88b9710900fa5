// Numbers in memory of the host for other libraries, by DLPack.
#pragma once

#include <memory>
#include <vector>

#include "python/src/object.h"

namespace heddle::python {

using SharedFloats = std::shared_ptr<std::vector<float>>;

// A capsule of an f32 tensor [rows, columns] that shares the numbers; of DLPack 1.x where `versioned`, else of the one
// before.
PyObject* dlpack_capsule(const SharedFloats& numbers, size_t columns, bool versioned);

}  // namespace heddle::python
