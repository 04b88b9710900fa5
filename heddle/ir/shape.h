// A tensor's shape: how many elements it has, and what messages call it.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "heddle/ir/tensor.h"

namespace heddle {

// The sizes of a tensor as an argument of a call, which it does not copy: {rows, columns}, those of a vector or of a tensor.
struct Sizes : std::span<const i32> {
  Sizes(std::initializer_list<i32> sizes) : span(sizes.begin(), sizes.size()) {}
  Sizes(const std::vector<i32>& sizes) : span(sizes) {}
  Sizes(const Tensor& tensor) : span(tensor.size, tensor.rank) {}
};

i64 elements(const Tensor& tensor);            // 1 for a tensor without dimensions
std::string shape_text(const Tensor& tensor);  // "f32 [5, 37]"

}  // namespace heddle
