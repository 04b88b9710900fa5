// Whole kernels of gated_delta_rule and its gradient on the host: which tensors they take.
#pragma once

#include <algorithm>
#include <span>
#include <string>

#include "heddle/base/integer.h"
#include "heddle/ir/kernel.h"
#include "heddle/ir/rules.h"
#include "heddle/kit/why_not.h"
#include "heddle/ops/recurrence/delta_memory.h"

namespace heddle {

constexpr i32 kMostDeltaDim = 128;

// The reason why a tensor [B, T, H, columns] is not taken.
inline std::string why_rows(const char* name, const Tensor& tensor, DType dtype, i32 most) {
  return why_rows(name, tensor, dtype, 16, most);
}

// The reason why states [B, H, rows, columns] are not taken.
inline std::string why_dense(const char* name, const Tensor& tensor) {
  const Tensor like = dense(tensor.dtype, {tensor.size[0], tensor.size[1], tensor.size[2], tensor.size[3]});
  const bool is = std::ranges::equal(std::span(tensor.stride, 3), std::span(like.stride, 3));
  return is ? "" : fmt::format("{} is not dense", name);
}

// Warps of a CTA that scans chunks, each with 16 columns of the state.
inline i32 delta_warps(i32 columns) {
  return std::min(4, columns / 16);
}

}  // namespace heddle
