// Says which arguments of an op are matrices that may lie in rows or in columns (ir/matrices.h).
#pragma once

#include <string_view>

#include "heddle/ir/op.h"

namespace heddle {

// Each name is that of a tensor, and of the attribute "name.transposed".
void mark_matrices(OpSpec& op, std::initializer_list<std::string_view> names);

}  // namespace heddle
