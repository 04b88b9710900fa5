// The check with another registry of ops, or without one of its rules: for its tests.
#pragma once

#include "heddle/ir/check/form.h"
#include "heddle/ir/check/report.h"

namespace heddle::proof {

// Without a rule, the check accepts what only that rule refuses. Without a rule about edges it stops after
// the edges, because its later parts assume that edges are right.
CheckReport check_with(const Program& program, FindOp find, std::optional<Rule> without = std::nullopt);

}  // namespace heddle::proof
