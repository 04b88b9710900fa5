// Reasons why a whole kernel does not take a tensor (KernelPlan::why_not), for plans on the host.
#pragma once

#include <initializer_list>
#include <string>

#include <fmt/format.h>

#include "heddle/ir/tensor.h"

namespace heddle {

// The reason why a tensor [., ., ., columns] of `dtype` is not taken: it has a multiple of `unit` columns, at most `most`, and rows begin
// at multiples of 16 bytes.
inline std::string why_rows(const char* name, const Tensor& tensor, DType dtype, i32 unit, i32 most) {
  if (tensor.dtype != dtype)
    return fmt::format("{} is {}; must be {}", name, heddle::name(tensor.dtype), heddle::name(dtype));
  if (tensor.size[3] % unit != 0 || tensor.size[3] > most)
    return fmt::format("{} has rows of {}; must be a multiple of {}, at most {}", name, tensor.size[3], unit,
                       most);
  for (int d = 0; d < 3; ++d)
    if (tensor.stride[d] * size_of(dtype) % 16 != 0)
      return fmt::format("{} has strides of {} elements; rows must begin at multiples of 16 bytes", name,
                         tensor.stride[d]);
  return {};
}

// The first reason that is one.
inline std::string first_of(std::initializer_list<std::string> reasons) {
  for (const std::string& reason : reasons)
    if (!reason.empty()) return reason;
  return {};
}

}  // namespace heddle
