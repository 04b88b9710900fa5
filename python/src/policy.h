// A scheduler that is written in Python, as a policy of the engine.
#pragma once

#include <nanobind/nanobind.h>

#include "heddle/schedule/schedule.h"

namespace heddle::python {

// Calls heddle.scheduling.run(scheduler, ...). An exception of Python passes through as PythonError. The caller holds the
// interpreter's lock, and keeps `scheduler` while the policy is used.
OwnPolicy policy_of(nanobind::handle scheduler);
// As messages name it: "my_module.f".
std::string name_of_policy(nanobind::handle scheduler);

}  // namespace heddle::python
