// Makes compiled code for a package: `python -m heddle.package`.
#pragma once

#include "python/src/object.h"

namespace heddle::python {

void add_package(nanobind::module_& module);

}  // namespace heddle::python
