// Whole kernels of symmetric powers on the host: which tensors they take, and how bulk copies see them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include "heddle/base/integer.h"
#include "heddle/ir/kernel.h"
#include "heddle/ir/rules.h"
#include "heddle/kit/arch/target.h"
#include "heddle/kit/move/box.h"
#include "heddle/kit/why_not.h"
#include "heddle/ops/sympow/sympow_memory.h"

namespace heddle {

constexpr i32 kMostKernelColumns = 128;

inline std::string why_rows(const char* name, const Tensor& tensor, DType dtype) {
  return why_rows(name, tensor, dtype, 8, kMostKernelColumns);
}

// The reason why the past is not read, which is four bytes at a time.
inline std::string why_past(const Tensor& past, DType dtype) {
  if (past.rank == 0) return {};
  if (past.dtype != dtype) return "past has another dtype than q";
  const bool even = past.stride[0] % 2 == 0 && past.stride[1] % 2 == 0 && past.stride[2] % 2 == 0;
  return even ? "" : "past has rows that begin at odd elements";
}

inline std::string why_dtype(const char* name, DType dtype) {
  if (dtype == DType::kBf16 || dtype == DType::kF16) return {};
  return fmt::format("{} is {}; must be bf16 or f16", name, heddle::name(dtype));
}

// Kernels of rows give each row some neighbouring lanes of eight elements (row_lanes_kernel.sm80.cuh).
constexpr i32 kMostLanes = 32;

// The reason why such a kernel does not take a tensor of rows.
inline std::string why_lanes(const char* name, const Tensor& tensor) {
  if (!is_wide_float(tensor.dtype)) return fmt::format("{} is {}", name, heddle::name(tensor.dtype));
  if (tensor.size[3] % 8 != 0)
    return fmt::format("{} has rows of {}; must be a multiple of 8", name, tensor.size[3]);
  for (int d = 0; d < 3; ++d)
    if (tensor.stride[d] * size_of(tensor.dtype) % 16 != 0)
      return fmt::format("{} has strides of {} elements; rows must begin at multiples of 16 bytes", name,
                         tensor.stride[d]);
  return {};
}
// Lanes for rows of so many elements; 0: they are too long.
inline i32 lanes_of(i32 columns) {
  for (i32 lanes = 1; lanes <= kMostLanes; lanes *= 2)
    if (lanes * 8 >= columns) return lanes;
  return 0;
}
// The plan of such a kernel. `ctas`: 0 for as many as all rows need.
inline KernelPlan plan_of_lanes(const Tensor& rows, std::initializer_list<std::string> reasons, i64 ctas) {
  constexpr i32 kThreads = 256;
  KernelPlan plan{.why_not = first_of(reasons), .file = "sm80"};
  const i32 lanes = lanes_of(rows.size[3]);
  if (plan.why_not.empty() && lanes == 0)
    plan.why_not = fmt::format("rows have {} elements; must have at most {}", rows.size[3], 8 * kMostLanes);
  if (!plan.why_not.empty()) return plan;
  const i64 lines = i64(rows.size[0]) * rows.size[1] * rows.size[2];
  plan.constants = {{"kernel", 1}, {"lanes", lanes}};
  plan.launches.push_back(
      {.grid = u32(ctas > 0 ? ctas : ceil_div(lines * lanes, kThreads)), .threads = kThreads});
  return plan;
}

// Boxes of 64 elements and `rows` positions of one head, of a tensor [B, T, H, K] at `address` in the arguments.
inline KernelMap rows_map(size_t address, const Tensor& x, i32 rows = 64) {
  const tile::OperandTile tile = box_tile(rows);
  const i64 size = size_of(x.dtype);
  return {.address = u32(address + offsetof(Tensor, data)),
          .dtype = x.dtype,
          .rank = 4,
          .size = {x.size[3], x.size[2], x.size[1], x.size[0]},
          .stride = {0, size * x.stride[2], size * x.stride[1], size * x.stride[0]},
          .box = {tile.span_elements(), 1, tile.lines(), 1},
          .swizzle = swizzle_of(tile)};
}
// Boxes of 64 columns and `rows` rows of one head, of states [B, H, C, E].
inline KernelMap states_map(size_t address, const Tensor& s, i32 rows) {
  KernelMap map = rows_map(address, s, 1);
  map.box = {map.box[0], rows, 1, 1};
  return map;
}

inline i32 boxes_of(i32 elements) {
  return (elements + 63) / 64;
}
inline i32 stages_in(i64 bytes, const SympowMemory& memory) {
  constexpr i32 kMost = 12;
  return tile::most_stages(kMost, bytes, [&](i32 stages) { return sympow_budget(memory, stages); });
}
// CTAs of a persistent kernel: clusters as many as there are items, or as the device holds.
inline u32 persistent_grid(i64 items, i32 cluster, const KernelTarget& target) {
  return u32(std::min<i64>(items, target.multiprocessors / cluster) * cluster);
}

}  // namespace heddle
