// What the arguments of an opcode's calls have in common, as C++: of a product of a row, a kernel that knows forms has a
// quarter of the code of one that reads them, one that knows sizes an eighth.
#pragma once

#include <string>
#include <vector>

#include "heddle/ir/program.h"

namespace heddle::cuda {

// By part of the opcode's chain: statements about arguments `a`. Empty: nothing is known.
using KnownArgs = std::vector<std::string>;

// Forms, which models of other sizes have in common: dtypes, which tensors are there, how panels are made; of numbers those
// that are powers of two up to 128 (features that are off or on, steps of one row, elements side by side, heads, pages), and
// whether 8 and 64 divide them. Sizes: all numbers.
enum class Knowledge { kForms, kSizes };

// What of that, and nothing of places in memory, is the same in all calls of opcode `index`.
KnownArgs known_args(const Program& program, size_t index, Knowledge knowledge);

}  // namespace heddle::cuda
