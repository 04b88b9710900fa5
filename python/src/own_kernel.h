// Optional parts of an op of one's own in Python: configurations, and the plan of a whole kernel.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "heddle/ir/op.h"
#include "python/src/object.h"

namespace heddle::python {

// [({value: number}, whether it adds in another order)] of Python; throws Error for names and numbers that are none.
std::vector<OpConfig> own_configs(const std::string& op, const nanobind::list& given);

// Returns the configurations that a call may have: those of a whole kernel, if any, then those of tiles.
std::vector<OpConfig> configs_for(const std::vector<OpConfig>& all, const TilingTarget& target);

// The rule that asks `plan`, a function of Python, which lives as long as the process (python/heddle/own/kernel.py has what it gets
// and returns). `needs_kernel`: the op has no tile body that could run instead.
KernelRule own_kernel_rule(const std::string& op, const std::vector<Field>& fields, PyObject* plan,
                           bool needs_kernel);

}  // namespace heddle::python
