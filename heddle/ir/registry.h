// The ops of this process. A program adds its built-in ops when it starts (engine/builtins.h); others may be
// added at any time. An op never moves, changes or disappears once it is added.
#pragma once

#include <string_view>
#include <vector>

#include "heddle/ir/op.h"

namespace heddle {

// Adds an op, from any thread. Throws Error when the op is incomplete, or when another op has its name. The
// second overload keeps a reference: the op must outlive the registry's use of it.
const OpSpec& add_op(OpSpec op);
void add_op(const OpSpec* op);

std::vector<const OpSpec*> all_ops();          // sorted by name
const OpSpec* find_op(std::string_view name);  // null when there is none
const OpSpec& get_op(std::string_view name);   // throws Error

// Throws Error that names what is missing or wrong.
void require_complete(const OpSpec& op);

}  // namespace heddle
