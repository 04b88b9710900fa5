// The shape rule that an op's fields tell, for ops that need no other.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heddle/ir/field.h"

namespace heddle {

// Dimensions of one name have one size, those with an attribute's name have its value, and "." may have any. Outputs get
// their sizes so; a size that nothing gives must stand in the output already. An output without a shape gets the dtype of
// the first tensor that is read, where its field allows that, or else the first that it allows. Throws Error.
std::function<void(std::byte* args)> infer_from_dims(std::string op, std::vector<Field> fields);

}  // namespace heddle
