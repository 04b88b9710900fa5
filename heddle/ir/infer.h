// A shape rule that follows from an op's fields, for ops that need no other.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heddle/ir/field.h"

namespace heddle {

// Makes the rule. Dimensions with one name have one size, those with an attribute's name have its value, and
// "." may have any size. Outputs get their sizes from these; a size that nothing gives must be in the output
// already. An output without a shape gets the dtype of the first tensor that is read, if its field allows
// that, or else the first dtype that it allows. Throws Error.
std::function<void(std::byte* args)> infer_from_dims(std::string op, std::vector<Field> fields);

}  // namespace heddle
