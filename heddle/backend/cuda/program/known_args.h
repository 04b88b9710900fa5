// What the arguments of an opcode's calls have in common, as C++: of a product of a row, a kernel that knows forms has a
// quarter of the code of one that reads them, one that knows sizes an eighth.
#pragma once

#include <string>
#include <vector>

#include "heddle/ir/executor.h"
#include "heddle/ir/program.h"

namespace heddle::cuda {

// By part of the opcode's chain: statements about arguments `a`. Empty: nothing is known.
using KnownArgs = std::vector<std::string>;

// What is known of it and the same in all calls of opcode `index`; nothing of places in memory.
KnownArgs known_args(const Program& program, size_t index, Knowledge knowledge);

// The same of one op's arguments by themselves.
KnownArgs known_args(const OpSpec& op, const std::byte* args, Knowledge knowledge);

}  // namespace heddle::cuda
