// Tensors in messages.
#pragma once

#include <string>

#include "heddle/ir/tensor.h"

namespace heddle {

std::string shape_text(const Tensor& tensor);  // "f32 [5, 37]"

}  // namespace heddle
