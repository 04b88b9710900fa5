// What the arguments of an opcode's calls have in common, as C++: a kernel that knows sizes, strides and dtypes has a
// fraction of the code of one that reads them.
#pragma once

#include <string>
#include <vector>

#include "heddle/ir/program.h"

namespace heddle::cuda {

// By part of the opcode's chain: statements about arguments `a`. Empty: nothing is known.
using KnownArgs = std::vector<std::string>;

// Everything but places in memory that is the same in all calls of opcode `index`.
KnownArgs known_args(const Program& program, size_t index);

}  // namespace heddle::cuda
