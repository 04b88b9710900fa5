// The ops of this process. A program adds those that it was built with when it starts (engine/builtins.h); others may
// come at any time. An op that was added stays where it is and as it is until the process ends.
#pragma once

#include <string_view>
#include <vector>

#include "heddle/ir/op.h"

namespace heddle {

// Adds an op, from any thread. Throws Error where it lacks something that every op needs, or where another op has its
// name. The second one refers to an op that outlives the process's use of it.
const OpSpec& add_op(OpSpec op);
void add_op(const OpSpec* op);

std::vector<const OpSpec*> all_ops();          // sorted by name
const OpSpec* find_op(std::string_view name);  // null when there is none
const OpSpec& get_op(std::string_view name);   // throws Error

// Throws Error and names what is missing or wrong.
void require_complete(const OpSpec& op);

}  // namespace heddle
