// Plans flash_attention_backward as whole kernels (flash_attention_backward_kernel.sm90.cuh): what fits.
#include <algorithm>

#include "heddle/kit/arch/target.h"
#include "heddle/ops/flash_attention/attention_kernel.h"
#include "heddle/ops/flash_attention/flash_attention_backward.h"

namespace heddle::flash_attention_backward {
namespace {

constexpr i32 kSideThreads = 256;  // a CTA of the kernels before and after the main one has

// The columns that keys and values have on chip.
i32 dim_of(const FlashAttentionBackward& a) {
  const i32 widest = std::max(a.q.last(), a.v.last());
  return widest <= 64 ? 64 : widest <= 128 ? 128 : widest <= 256 ? 256 : 0;
}

std::string why_not(const FlashAttentionBackward& a, const KernelTarget& target) {
  if (std::string why = why_not_sm90(target); !why.empty()) return why;
  for (const auto& [name, tensor] : {std::pair{"q", &a.q},
                                     {"k", &a.k},
                                     {"v", &a.v},
                                     {"dy", &a.dy},
                                     {"dq", &a.dq},
                                     {"dk", &a.dk},
                                     {"dv", &a.dv}})
    if (std::string why = why_no_boxes(name, *tensor, a.q.dtype); !why.empty()) return why;
  if (a.q.last() % 8 != 0 || a.v.last() % 8 != 0)
    return fmt::format("heads have {} and {} elements; must be multiples of 8", a.q.last(), a.v.last());
  if (dim_of(a) == 0)
    return fmt::format("heads have {} and {} elements; at most 256", a.q.last(), a.v.last());
  constexpr i32 kMostRows = 1 << 22;  // so that products of the numbers of tiles fit in 32 bits
  if (a.q.size[1] > kMostRows || a.k.size[1] > kMostRows)
    return fmt::format("there are {} queries and {} keys; at most {}", a.q.size[1], a.k.size[1], kMostRows);
  if (a.kv_num_blocks.rank > 0 && (a.block_q % kStepQueries != 0 || a.block_k % block_keys(dim_of(a)) != 0))
    return fmt::format("blocks have {} queries and {} keys; must be multiples of {} and {}", a.block_q,
                       a.block_k, kStepQueries, block_keys(dim_of(a)));
  if (a.scale < 0) return fmt::format("scale is {}; must not be negative", a.scale);
  return {};
}

KernelLaunch main_launch(const FlashAttentionBackward& a, i64 ctas) {
  const i32 dim = dim_of(a);
  const tile::OperandTile queries = head_tile(kStepQueries, dim), keys = head_tile(block_keys(dim), dim);
  const tile::Budget budget = kernel_budget(dim);
  KernelLaunch launch{
      .grid = u32(ctas), .threads = u32(budget.threads()), .shared_bytes = budget.shared_bytes()};
  launch.maps = {head_map(offsetof(FlashAttentionBackward, q), a.q, queries),
                 head_map(offsetof(FlashAttentionBackward, k), a.k, keys),
                 head_map(offsetof(FlashAttentionBackward, v), a.v, keys),
                 head_map(offsetof(FlashAttentionBackward, dy), a.dy, queries)};
  return launch;
}

}  // namespace

KernelPlan kernel(const std::byte* args, const KernelTarget& target, const OpConfig&) {
  const auto& a = as<FlashAttentionBackward>(args);
  KernelPlan plan{.why_not = why_not(a, target), .file = "sm90"};
  if (!plan.why_not.empty()) return plan;
  const AttentionRoom room(a, dim_of(a));
  const i32 splits = splits_of_heads(a, room);
  const i64 steps = i64(a.q.size[0]) * a.q.size[2] * room.steps;
  const i64 tiles = i64(room.tiles) * a.k.size[0] * a.k.size[2];
  const i64 joining = splits > 1 ? tiles * joining_ctas(dim_of(a)) : 0;
  plan.launches = {{.name = "Prepare",
                    .grid = u32((steps * kStepQueries + kSideThreads - 1) / kSideThreads),
                    .threads = kSideThreads},
                   main_launch(a, tiles * splits),
                   {.name = "Finish", .grid = u32(steps + joining), .threads = kSideThreads}};
  if (a.kv_num_blocks.rank > 0)
    plan.launches.insert(plan.launches.begin(),
                         {.name = "Order", .grid = u32(room.lists), .threads = kSideThreads});
  // Sums of 128 elements leave the helpers 24 registers, and too few for whatever modifies scores.
  const bool modifies_scores = a.softcap > 0 || a.bias.exists() || a.alibi_slopes.exists();
  plan.constants = {{"kernel", 1},
                    {"dim", dim_of(a)},
                    {"softcap", a.softcap > 0 ? 1 : 0},
                    {"spills", modifies_scores ? 320 : 192}};
  plan.workspace_bytes = room.bytes(a, dim_of(a), splits);
  plan.cleared_bytes = room.rows;
  return plan;
}

}  // namespace heddle::flash_attention_backward
