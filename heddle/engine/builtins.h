// The ops and backends of this build, from lists that the build writes from its folders.
#pragma once

#include <span>

#include "heddle/ir/executor/executor.h"

namespace heddle {

// Generated from the folders of heddle/backend; sorted by name.
std::span<const Backend* const> builtin_backends();

// Adds the ops and backends of this build to those of the process, once. A program calls it before it looks
// one up.
void register_builtins();

}  // namespace heddle
