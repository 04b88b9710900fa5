// Whole kernels of gated_delta_rule and its gradient on the host: which tensors they take.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <span>
#include <string>

#include "heddle/base/integer.h"
#include "heddle/ir/kernel.h"
#include "heddle/ir/rules.h"
#include "heddle/ops/recurrence/delta_memory.h"

namespace heddle {

constexpr i32 kMostDeltaDim = 128;

// The reason why a tensor [B, T, H, columns] is not taken: rows must begin at multiples of 16 bytes.
inline std::string why_rows(const char* name, const Tensor& tensor, DType dtype, i32 most) {
  if (tensor.dtype != dtype)
    return fmt::format("{} is {}; must be {}", name, heddle::name(tensor.dtype), heddle::name(dtype));
  if (tensor.size[3] % 16 != 0 || tensor.size[3] > most)
    return fmt::format("{} has rows of {}; must be a multiple of 16, at most {}", name, tensor.size[3], most);
  for (int d = 0; d < 3; ++d)
    if (tensor.stride[d] * size_of(dtype) % 16 != 0)
      return fmt::format("{} has strides of {} elements; rows must begin at multiples of 16 bytes", name,
                         tensor.stride[d]);
  return {};
}

// The reason why states [B, H, rows, columns] are not taken.
inline std::string why_dense(const char* name, const Tensor& tensor) {
  const Tensor like = dense(tensor.dtype, {tensor.size[0], tensor.size[1], tensor.size[2], tensor.size[3]});
  const bool is = std::ranges::equal(std::span(tensor.stride, 3), std::span(like.stride, 3));
  return is ? "" : fmt::format("{} is not dense", name);
}

// The first reason that is one.
inline std::string first_reason(std::initializer_list<std::string> reasons) {
  for (const std::string& reason : reasons)
    if (!reason.empty()) return reason;
  return {};
}

// Warps of a CTA that scans chunks, each with 16 columns of the state.
inline i32 delta_warps(i32 columns) {
  return std::min(4, columns / 16);
}

}  // namespace heddle
