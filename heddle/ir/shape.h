// A tensor's shape: how many elements it has, and what messages call it.
#pragma once

#include <string>

#include "heddle/ir/tensor.h"

namespace heddle {

i64 elements(const Tensor& tensor);            // 1 for a tensor without dimensions
std::string shape_text(const Tensor& tensor);  // "f32 [5, 37]"

}  // namespace heddle
