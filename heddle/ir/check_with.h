// The check with another registry of ops: its tests bring ops of their own.
#pragma once

#include "heddle/ir/check.h"
#include "heddle/ir/check_form.h"

namespace heddle::proof {

CheckReport check_with(const Program& program, FindOp find);

}  // namespace heddle::proof
