// Models: answers, logits and tokens of a model's folder.
#pragma once

#include <nanobind/nanobind.h>

namespace heddle::python {

void add_model(nanobind::module_& module);

}  // namespace heddle::python
