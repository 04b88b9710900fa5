// Plans linear of many rows as a whole kernel (linear_kernel.sm90.cuh): what fits, and the sizes of its
// tiles.
#include <algorithm>
#include <cstddef>

#include "heddle/base/integer.h"
#include "heddle/ir/product.h"
#include "heddle/ir/row_classes.h"
#include "heddle/ir/rules.h"
#include "heddle/kit/arch/target.h"
#include "heddle/kit/move/box.h"
#include "heddle/ops/linear/linear.h"
#include "heddle/ops/linear/linear_memory.h"

namespace heddle::linear {
namespace {

// `slab_ns`: nanoseconds of a slab of 64 k where the whole device works, from gate and up of a 1B on an H100.
struct Shape {
  i64 rows, slab_ns;
};
constexpr Shape kShapes[] = {{256, 643}, {192, 511}, {128, 439}, {64, 230}};
constexpr i64 kRowNs = 20;  // what each row of a tile takes besides its slabs

i64 tiles_of(const Linear& a, const Shape& shape) {
  return ceil_div(a.x.size[0], shape.rows) * ceil_div(a.w.rows(), kColumns);
}

const Shape& shape_for(const Linear& a, i32 multiprocessors) {
  return *std::ranges::min_element(kShapes, {}, [&](const Shape& shape) {
    return ceil_div(tiles_of(a, shape), multiprocessors) *
           (ceil_div(a.w.cols(), kSlabK) * shape.slab_ns + shape.rows * kRowNs);
  });
}

// Few rows have few tiles: clusters of CTAs have parts of k, so that all SMs stream. The order of sums follows from the weight, and from
// whether a step has more than kManyStepRows rows, never from its rows or from the device. Clusters of 8, two CTAs an SM, or both took
// 4 to 15 % longer for 16 sequences of a 1B (H200).
constexpr i32 kParts[] = {4, 2};
constexpr i64 kMostCtas = 120;  // in clusters of up to 4, one on each SM of an H200

bool is_few(const Linear& a) {
  return a.x.size[0] <= kManyStepRows;
}

i32 parts_of_k(const Linear& a, i32 rows, i32 fold) {
  if (!is_few(a)) return 1;
  constexpr i32 kBoxes = 1024;  // where boxes that are stored begin, multiples of so many bytes
  const i64 tiles = ceil_div(a.w.rows(), kColumns), slabs = ceil_div(a.w.cols(), kSlabK);
  for (const i32 parts : kParts)
    if (stored_tile(rows / parts, fold, size_of(a.y.dtype)).bytes() % kBoxes == 0 &&
        tiles * parts <= kMostCtas && (parts - 1) * ceil_div(slabs, parts) < slabs)
      return parts;
  return 1;
}

std::string why_not(const Linear& a, i64 fold, const KernelTarget& target) {
  if (std::string why = why_not_sm90(target); !why.empty()) return why;
  if (a.x.size[0] <= kFewStepRows)
    return fmt::format("it has {} rows; must be more than {}", a.x.size[0], kFewStepRows);
  const DType x = a.x.dtype, w = a.w.data.dtype;
  if (x != w || !is_wide_float(x) || size_of(x) != 2)
    return fmt::format("x is {} and w is {}; must both be bf16 or f16", name(x), name(w));
  if (!has_ring_panels(a.w) || a.w.matrices != 1) return "w is not one matrix in panels of two rows";
  if (!is_wide_float(a.y.dtype)) return fmt::format("y is {}", name(a.y.dtype));
  if (fold > 2 || a.w.rows() % 2 != 0 || a.y.last() * fold != a.w.rows())
    return fmt::format("{} rows of w make {} columns of y; must be as many, or twice as many", a.w.rows(),
                       a.y.last());
  if (a.w.cols() % 32 != 0) return fmt::format("w has {} columns; must be a multiple of 32", a.w.cols());
  if (std::string why = why_no_row_copies("x", a.x); !why.empty()) return why;
  if (std::string why = why_no_row_copies("y", a.y); !why.empty()) return why;
  // Bulk stores would write zeros to what lies after the last column (H200).
  constexpr i64 kWord = 16;
  const i64 bytes = i64(a.y.last()) * size_of(a.y.dtype);
  if (bytes % kWord != 0)
    return fmt::format("y's rows have {} bytes; must be a multiple of {}", bytes, kWord);
  return {};
}

// Words of both rows of a panel; panels; lines of 128 bytes of a panel.
KernelMap map_of_panels(const Weight& w) {
  if (w.is_coded()) {
    constexpr tile::OperandTile kCoded = coded_tile();
    return {.address = u32(offsetof(Linear, w) + offsetof(Weight, data) + offsetof(Tensor, data)),
            .dtype = DType::kU8,
            .rank = 3,
            .size = {kCoded.span, w.panels(), w.panel_bytes() / kCoded.span},
            .stride = {0, w.panel_bytes(), kCoded.span},
            .box = {kCoded.span, kCoded.rows, 1},
            .swizzle = swizzle_of(kCoded)};
  }
  constexpr tile::OperandTile kTile = slab_tile(64);
  const i32 wide = kTile.span / size_of(w.data.dtype);
  return {.address = u32(offsetof(Linear, w) + offsetof(Weight, data) + offsetof(Tensor, data)),
          .dtype = w.data.dtype,
          .rank = 3,
          .size = {wide, w.panels(), w.panel_bytes() / kTile.span},
          .stride = {0, w.panel_bytes(), kTile.span},
          .box = {wide, kTile.rows / 2, 2},
          .swizzle = swizzle_of(kTile)};
}

}  // namespace

KernelPlan kernel(const std::byte* args, const KernelTarget& target, const OpConfig& config) {
  const auto& a = as<Linear>(args);
  const i64 fold = config.contains("fold") ? config.at("fold") : 1;
  KernelPlan plan{.why_not = why_not(a, fold, target), .file = "sm90"};
  if (!plan.why_not.empty()) return plan;
  const Shape& shape = shape_for(a, target.multiprocessors);
  constexpr i32 kMostStages = 8;
  KernelSizes sizes{.rows = i32(shape.rows),
                    .split = parts_of_k(a, i32(shape.rows), i32(fold)),
                    .fold = i32(fold),
                    .out_bytes = size_of(a.y.dtype),
                    .coded = a.w.is_coded()};
  sizes.stages = tile::most_stages(kMostStages, target.shared_bytes, [&](i32 stages) {
    KernelSizes with = sizes;
    with.stages = stages;
    return with.budget();
  });
  const tile::Budget budget = sizes.budget();
  const i64 clusters = std::min<i64>(tiles_of(a, shape), std::max(1, target.multiprocessors / sizes.split));
  plan.constants = {{"rows", sizes.rows}, {"split", sizes.split}, {"stages", sizes.stages}, {"fold", fold}};
  plan.launches.push_back(
      {.name = "ChainKernel",
       .grid = u32(clusters * sizes.split),
       .cluster = u32(sizes.split),
       .threads = u32(budget.threads()),
       .shared_bytes = budget.shared_bytes(),
       .maps = {
           box_map(offsetof(Linear, x), a.x, slab_tile(sizes.rows)), map_of_panels(a.w),
           box_map(offsetof(Linear, y), a.y, stored_tile(sizes.own_rows(), sizes.fold, sizes.out_bytes))}});
  return plan;
}

}  // namespace heddle::linear
