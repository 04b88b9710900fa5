#include "heddle/ops/matmul/warp_kernel.h"

#include <algorithm>

#include "heddle/base/integer.h"
#include "heddle/ops/matmul/product_memory.h"
#include "heddle/ops/matmul/tile_shapes.h"

namespace heddle {
namespace {

struct WarpShape {
  i32 rows, columns, row_warps, col_warps;

  tile::Budget budget(i32 stages) const { return warp_product_budget(rows, columns, stages); }
  i32 stages(const KernelTarget& target) const {
    constexpr i32 kMost = 4;
    return tile::most_stages(kMost, target.shared_bytes, [&](i32 count) { return budget(count); });
  }
  i64 tiles(const ProductCall& call) const {
    return ceil_div(call.rows, rows) * ceil_div(call.columns, columns);
  }
};
constexpr WarpShape kWarpShapes[] = {{128, 128, 4, 2}, {64, 128, 2, 4}, {64, 64, 2, 2}, {16, 64, 1, 4}};

// Products and copies of a multiprocessor, in products.
i64 cost(const WarpShape& shape, const ProductCall& call, const KernelTarget& target) {
  constexpr i64 kCopied = 32;  // products that take as long as the copies of a row
  const i64 waves = ceil_div(shape.tiles(call), target.multiprocessors);
  return waves * (i64(shape.rows) * shape.columns + kCopied * (shape.rows + shape.columns));
}

// Others convert the elements to f16, and have no registers for the largest tile then (kit/arch/mma.cuh).
bool multiplies_codes(const KernelTarget& target) {
  return target.arch == 89 || target.arch >= 120;
}

std::vector<WarpShape> ranked(const ProductCall& call, const KernelTarget& target) {
  std::vector<WarpShape> shapes(std::begin(kWarpShapes) + (multiplies_codes(target) ? 0 : 1),
                                std::end(kWarpShapes));
  std::ranges::stable_sort(shapes, {}, [&](const WarpShape& shape) { return cost(shape, call, target); });
  return shapes;
}

std::string why_no_warps(const ProductCall& call, const KernelTarget& target) {
  if (target.arch < 89) return "it is for compute capability 8.9 and newer";
  if (std::string why = why_operands(call); !why.empty()) return why;
  return why_pitches(call);
}

OpConfig config_of(const WarpShape& shape, const ProductCall& call, const KernelTarget& target) {
  return {{"kernel", 1},
          {"rows", shape.rows},
          {"columns", shape.columns},
          {"row_warps", shape.row_warps},
          {"col_warps", shape.col_warps},
          {"stages", shape.stages(target)},
          {"promotes", call.promotes},
          {"scales", call.scales}};
}

}  // namespace

bool is_of_warp_kernel(const OpConfig& config) {
  return config.contains("row_warps");
}

std::vector<OpConfig> warp_kernel_configs(const ProductCall& call, const KernelTarget& target) {
  std::vector<OpConfig> configs;
  if (!why_no_warps(call, target).empty()) return configs;
  for (const WarpShape& shape : ranked(call, target)) configs.push_back(config_of(shape, call, target));
  return configs;
}

KernelPlan warp_kernel(const ProductCall& call, const KernelTarget& target, const OpConfig& config) {
  KernelPlan plan{.why_not = why_no_warps(call, target), .file = "sm80"};
  if (!plan.why_not.empty()) return plan;
  const std::vector<WarpShape> shapes = ranked(call, target);
  const WarpShape& chosen = shape_of(call.op, shapes, config,
                                     [&](const WarpShape& shape) { return config_of(shape, call, target); });
  plan.constants = config_of(chosen, call, target);
  plan.launches.push_back({.grid = u32(chosen.tiles(call)),
                           .threads = u32(32 * chosen.row_warps * chosen.col_warps),
                           .shared_bytes = chosen.budget(chosen.stages(target)).shared_bytes()});
  return plan;
}

}  // namespace heddle
