// Ops of the flash_attention family with a function of their scores that Python has written (python/heddle/flex).
#pragma once

#include "python/src/entry.h"

namespace heddle::python {

void add_scored_ops(nanobind::module_& module);

}  // namespace heddle::python
