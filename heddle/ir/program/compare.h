// Prints how two programs differ, for people: `heddle diff-programs`.
#pragma once

#include <string>

#include "heddle/ir/program/program.h"

namespace heddle {

// Returns "" when both are the same program, byte for byte. Otherwise returns at least one line for each
// table that differs, and the first instruction that differs. It matches buffers and calls by name, and tiles
// by call and place. `most` limits the entries of each table.
std::string print_differences(const Program& first, const Program& second, size_t most = 5);

}  // namespace heddle
