// Plans attention of many rows as a whole kernel (attention_kernel.sm90.cuh): what fits, and the sizes of its
// tiles.
#include <algorithm>
#include <cstddef>

#include "heddle/base/integer.h"
#include "heddle/ir/row_classes.h"
#include "heddle/ir/rules.h"
#include "heddle/kit/arch/target.h"
#include "heddle/kit/move/box.h"
#include "heddle/ops/attention/attention.h"
#include "heddle/ops/attention/chain_memory.h"

namespace heddle::attention {
namespace {

// The dims for which attention_mma.sm80.cuh has steps.
bool is_dim(i32 dim) {
  return dim == 64 || dim == 128 || dim == 256;
}

std::string why_not(const Attention& a, const KernelTarget& target) {
  if (std::string why = why_not_sm90(target); !why.empty()) return why;
  if (a.q.size[0] <= kManyStepRows)
    return fmt::format("it has {} rows; must be more than {}", a.q.size[0], kManyStepRows);
  if (a.max_splits != 1) return fmt::format("positions are cut into {} parts; must be one", a.max_splits);
  if (a.is_latent()) return "queries have a latent part";
  if (a.has_bias()) return "scores have a bias";
  if (!is_dim(a.head_dim()) || a.value_dim() != a.head_dim())
    return fmt::format("keys and values have {} and {} elements; must both have 64, 128 or 256", a.head_dim(),
                       a.value_dim());
  for (const auto& [name, tensor] :
       {std::pair{"q", &a.q}, {"k", &a.k}, {"v", &a.v}, {"keys", &a.keys}, {"values", &a.values}})
    if (tensor->dtype != a.q.dtype || size_of(tensor->dtype) != 2 || !is_wide_float(tensor->dtype))
      return fmt::format("{} is {}; all must be bf16 or all f16", name, heddle::name(tensor->dtype));
  if (const i64 size = a.keys.size[2]; size % 64 != 0 && size != 8 && size != 16 && size != 32)
    return fmt::format("pages have {} positions; must be 8, 16, 32 or a multiple of 64", size);
  for (const auto& [name, tensor] : {std::pair{"q", &a.q}, {"k", &a.k}, {"v", &a.v}})
    if (std::string why = why_no_row_copies(name, *tensor); !why.empty()) return why;
  return {};
}

// Boxes of positions of a page.
KernelMap map_of_pages(size_t address, const Tensor& pages, const tile::OperandTile& tile) {
  const i64 size = size_of(pages.dtype);
  return {.address = u32(address + offsetof(Tensor, data)),
          .dtype = pages.dtype,
          .rank = 4,
          .size = {pages.size[3], pages.size[2], pages.size[1], pages.size[0]},
          .stride = {0, pages.stride[2] * size, pages.stride[1] * size, pages.stride[0] * size},
          .box = {tile.span_elements(), std::min(tile.lines(), pages.size[2]), 1, 1},
          .swizzle = swizzle_of(tile)};
}

}  // namespace

KernelPlan kernel(const std::byte* args, const KernelTarget& target, const OpConfig&) {
  const auto& a = as<Attention>(args);
  KernelPlan plan{.why_not = why_not(a, target), .file = "sm90"};
  if (!plan.why_not.empty()) return plan;
  constexpr i32 kMostStages = 6;
  // Three groups hide more of the softmax than two, where there are tiles for all multiprocessors.
  const i32 dim = a.head_dim();
  const auto tiles = [&](i64 groups) { return ceil_div(a.q.size[0], 64 * groups) * a.heads; };
  const bool fits_three = dim <= 128 && tiles(3) >= 2 * target.multiprocessors;
  const i32 groups = fits_three ? 3 : 2;
  const auto budget_of = [&](i32 stages) { return kernel_budget(dim, groups, stages); };
  const i32 stages = tile::most_stages(kMostStages, target.shared_bytes, budget_of);
  const tile::Budget budget = budget_of(stages);
  const tile::OperandTile queries = head_tile(64 * groups, dim), block = head_tile(block_keys(dim), dim);
  plan.constants = {{"dim", dim},
                    {"groups", groups},
                    {"stages", stages},
                    {"modifies_scores", a.softcap > 0 || !(a.scale > 0)}};
  plan.launches.push_back(
      {.name = "ChainKernel",
       .grid = u32(std::min<i64>(tiles(groups), target.multiprocessors)),
       .threads = u32(budget.threads()),
       .shared_bytes = budget.shared_bytes(),
       .maps = {box_map(offsetof(Attention, q), a.q, queries), box_map(offsetof(Attention, k), a.k, block),
                box_map(offsetof(Attention, v), a.v, block),
                map_of_pages(offsetof(Attention, keys), a.keys, block),
                map_of_pages(offsetof(Attention, values), a.values, block)}});
  return plan;
}

}  // namespace heddle::attention
