// Plans flash_attention as a whole kernel (flash_attention_kernel.sm90.cuh): what fits, and its
// configurations.
#include <algorithm>

#include "heddle/kit/arch/target.h"
#include "heddle/ops/flash_attention/attention_kernel.h"
#include "heddle/ops/flash_attention/flash_attention.h"

namespace heddle::flash_attention {
namespace {

// Groups of four warps, keys of a block, and blocks in flight. Two groups that have 240 registers a thread keep the sums of a head
// (dim / 2), scores (keys / 2) and weights (keys / 4) in them.
struct Shape {
  i32 groups, keys, stages;
};

// Lists those that a head dim has, the best first (measured on an H100).
std::vector<Shape> shapes_of(i32 dim, bool modifies_scores) {
  if (modifies_scores && dim <= 128) return {{2, 128, 2}};
  if (dim <= 64) return {{3, 128, 2}, {2, 192, 2}, {2, 128, 2}};
  if (dim <= 96) return {{2, 128, 2}};
  if (dim <= 128) return {{2, 176, 2}, {2, 160, 2}, {2, 128, 2}};
  if (dim <= 192) return {{2, 96, 2}};
  return {{2, 80, 2}};
}

struct Dims {
  i32 keys, values;
};
Dims dims_of(const FlashAttention& a) {
  const i32 keys = kernel_dim(a.q.last()), values = kernel_dim(a.v.last());
  if (keys == 192 && values == 128) return {keys, values};
  return {std::max(keys, values), std::max(keys, values)};
}

OpConfig config_of(const FlashAttention& a, const Shape& shape) {
  // Bytes spilled: three groups have 128 registers a thread and spill 40 (NVRTC 13.0, sm_90a).
  return {{"kernel", 1},
          {"dim", dims_of(a).keys},
          {"value_dim", dims_of(a).values},
          {"groups", shape.groups},
          {"keys", shape.keys},
          {"stages", shape.stages},
          {"softcap", a.softcap > 0 ? 1 : 0},
          {"spills", 48}};
}

bool has_lists(const FlashAttention& a) {
  return a.kv_num_blocks.rank > 0;
}

std::vector<Shape> shapes_of(const FlashAttention& a) {
  // Blocks of a list are cut into those of the kernel.
  if (has_lists(a)) return {{2, dims_of(a).keys <= 128 && a.block_k % 128 == 0 ? 128 : 64, 2}};
  const bool modifies_scores = a.softcap > 0 || a.bias.exists() || a.alibi_slopes.exists();
  return shapes_of(std::max(dims_of(a).keys, dims_of(a).values), modifies_scores);
}

// Nothing here may follow from the number of rows: the tiles of the body have other sums.
std::string why_not(const FlashAttention& a, const KernelTarget& target) {
  if (std::string why = why_not_sm90(target); !why.empty()) return why;
  for (const auto& [name, tensor] : {std::pair{"q", &a.q}, {"k", &a.k}, {"v", &a.v}, {"y", &a.y}})
    if (std::string why = why_no_boxes(name, *tensor, a.q.dtype); !why.empty()) return why;
  if (a.v.last() % 8 != 0)
    return fmt::format("v has heads of {} elements; must be a multiple of 8", a.v.last());
  if (kernel_dim(a.q.last()) == 0 || kernel_dim(a.v.last()) == 0)
    return fmt::format("heads have {} and {} elements; at most 256", a.q.last(), a.v.last());
  if (has_lists(a) && (a.block_q % 128 != 0 || a.block_k % 64 != 0))
    return fmt::format("blocks have {} queries and {} keys; must be multiples of 128 and 64", a.block_q,
                       a.block_k);
  if (a.scale < 0) return fmt::format("scale is {}; must not be negative", a.scale);
  return {};
}

KernelLaunch launch_of(const FlashAttention& a, const Shape& shape, const KernelTarget& target,
                       bool& counts) {
  const i32 rows = 64 * shape.groups;
  // Sequences need a tile each that is not full, and so do the rows before and after them.
  const i64 row_tiles = a.cu_seqlens_q.exists() ? a.q.size[1] / rows + a.cu_seqlens_q.size[0] + 1
                                                : (a.q.size[1] + rows - 1) / rows;
  const i64 tiles = row_tiles * a.q.size[0] * a.q.size[2];
  counts = tiles > target.multiprocessors && (a.causal || a.window_right >= 0 || has_lists(a));
  const Dims dims = dims_of(a);
  const tile::Budget budget = kernel_budget(dims.keys, dims.values, shape.groups, shape.keys, shape.stages);
  KernelLaunch launch{.grid = u32(std::min<i64>(tiles, target.multiprocessors)),
                      .threads = u32(budget.threads()),
                      .shared_bytes = budget.shared_bytes()};
  launch.maps = {head_map(offsetof(FlashAttention, q), a.q, head_tile(rows, dims.keys)),
                 head_map(offsetof(FlashAttention, k), a.k, head_tile(shape.keys, dims.keys)),
                 head_map(offsetof(FlashAttention, v), a.v, head_tile(shape.keys, dims.values))};
  return launch;
}

}  // namespace

std::vector<OpConfig> configs(const std::byte* args, const TilingTarget& target) {
  const auto& a = as<FlashAttention>(args);
  std::vector<OpConfig> configs;
  if (!target.kernels || !why_not(a, *target.kernels).empty()) return configs;
  for (const Shape& shape : shapes_of(a)) {
    const OpConfig config = config_of(a, shape);
    configs.push_back(configs.empty() ? config : config.reordering());
  }
  if (configs.size() == 1) configs.clear();  // one alone is no choice
  return configs;
}

KernelPlan kernel(const std::byte* args, const KernelTarget& target, const OpConfig& config) {
  const auto& a = as<FlashAttention>(args);
  KernelPlan plan{.why_not = why_not(a, target), .file = "sm90"};
  if (!plan.why_not.empty()) return plan;
  const std::vector<Shape> shapes = shapes_of(a);
  const auto chosen = std::ranges::find_if(shapes, [&](const Shape& shape) {
    return config.values().empty() || config_of(a, shape).values() == config.values();
  });
  require(chosen != shapes.end(), "[flash_attention] its kernel has no configuration {}", config.text());
  plan.constants = config_of(a, *chosen);
  bool counts = false;
  plan.launches.push_back(launch_of(a, *chosen, target, counts));
  if (counts) plan.workspace_bytes = plan.cleared_bytes = 4;  // the number of tiles that CTAs have taken
  return plan;
}

}  // namespace heddle::flash_attention
