// Ops that Python declares: their fields come from the class, their body from a library that a C++ compiler made of its
// text, their reference from a function of Python.
#pragma once

#include "python/src/entry.h"

namespace heddle::python {

void add_own_ops(nanobind::module_& module);

}  // namespace heddle::python
