// Writes what the arguments of an opcode's calls have in common, as C++. For a product of one row, a kernel that
// knows forms has a quarter of the code of one that reads them; one that knows sizes has an eighth.
#pragma once

#include <string>
#include <vector>

#include "heddle/ir/executor/executor.h"
#include "heddle/ir/program/program.h"

namespace heddle::cuda {

// Statements about arguments `a`, for each part of the opcode's chain. Empty: nothing is known.
using KnownArgs = std::vector<std::string>;

// Returns what all calls of opcode `index` share, as far as `knowledge` goes; nothing about places in memory.
KnownArgs known_args(const Program& program, size_t index, Knowledge knowledge);

// Returns what is known of the arguments of one op by itself.
KnownArgs known_args(const OpSpec& op, const std::byte* args, Knowledge knowledge);

}  // namespace heddle::cuda
