// The check with another registry of ops, or without one of its rules: for its tests.
#pragma once

#include "heddle/ir/check.h"
#include "heddle/ir/check_form.h"

namespace heddle::proof {

// Without a rule, the check takes what only that rule refuses. Where edges are concerned it ends there, since what comes
// behind takes them for granted.
CheckReport check_with(const Program& program, FindOp find, std::optional<Rule> without = std::nullopt);

}  // namespace heddle::proof
