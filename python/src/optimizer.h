// Steps of optimizers over lists of tensors of the host, for heddle.optim.
#pragma once

#include "python/src/object.h"

namespace heddle::python {

void add_optimizer(nanobind::module_& module);

}  // namespace heddle::python
