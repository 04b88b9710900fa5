// What differs between two programs, for people: `heddle diff-programs`.
#pragma once

#include <string>

#include "heddle/ir/program.h"

namespace heddle {

// "" where they are the same program, byte for byte. Else a line or more for each table that differs, buffers and calls
// matched by name, tiles by call and place, and the first instruction that differs; at most `most` entries of each.
std::string print_differences(const Program& first, const Program& second, size_t most = 5);

}  // namespace heddle
