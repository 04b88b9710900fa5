// Makes programs of one call from an op's cases.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heddle/ir/op.h"
#include "heddle/ir/program/program.h"

namespace heddle {

// Puts a call on one worker, tile after tile.
Program one_call(const Node& node, std::vector<ProgramBuffer> buffers, std::span<const TileAxis> axes);

// The program of a case in a form that the check accepts: what is only read is a table, what is written is an
// output.
Program program_of_case(const OpSpec& op, const Case& test);

}  // namespace heddle
