// Calls of ops that Python scheduled, as one program.
#pragma once

#include "heddle/engine/memory_calls.h"
#include "python/src/entry.h"
#include "python/src/kind.h"

namespace heddle::python {

// A call as Python gives it: the op's name, its tensors by name, outputs among them, and its attributes by
// name. Throws Error for a name that the op does not have, a tensor that is missing, or one that cannot be
// used where it lies.
struct ReadCall {
  MemoryCall call;
  OpEntry* entry = nullptr;
  MemoryPlace place;
  bool is_torch = false;
  std::vector<PyObject*> outputs;  // borrowed
};
ReadCall read_call(const nanobind::tuple& scheduled, Kept& kept);

void add_graph(nanobind::module_& module);

}  // namespace heddle::python
