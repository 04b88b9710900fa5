// The ops that this build has.
#pragma once

#include <span>

#include "heddle/ir/op.h"

namespace heddle {

// Generated from the folders of heddle/ops; sorted by name.
std::span<const OpSpec* const> builtin_ops();

}  // namespace heddle
