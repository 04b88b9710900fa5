// Describes an op in plain objects of Python: for help, stubs, torch's schemas.
#pragma once

#include "python/src/entry.h"

namespace heddle::python {

// heddle/ops/info.py gives the parts their names.
nanobind::dict describe(const OpEntry& entry);

// An attribute as Python has it; a choice by its name.
nanobind::object attribute_object(const Field& field, const std::byte* args);

}  // namespace heddle::python
