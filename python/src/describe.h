// What an op is, as plain objects of Python: for help, stubs, torch's schemas.
#pragma once

#include "python/src/entry.h"

namespace heddle::python {

// {"name", "doc", "signature", "why_not", "inputs", "outputs", "attributes", "gradient"}; heddle/ops/info.py gives the parts
// their names.
nanobind::dict describe(const OpEntry& entry);

// The dtypes that the op's rules give its outputs for such dtypes of inputs, by their names; None for an input that is left
// out. Throws Error where the op refuses them.
nanobind::list output_dtypes(const OpEntry& entry, nanobind::list inputs);

}  // namespace heddle::python
