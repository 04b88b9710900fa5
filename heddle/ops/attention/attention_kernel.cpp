// Plans attention of many rows as a whole kernel (attention_kernel.sm90.cuh): what fits, and the sizes of its
// tiles.
#include <algorithm>
#include <cstddef>

#include "heddle/base/integer.h"
#include "heddle/ir/row_classes.h"
#include "heddle/ir/rules.h"
#include "heddle/kit/arch/target.h"
#include "heddle/ops/attention/attention.h"

namespace heddle::attention {
namespace {

constexpr i64 kBoxColumns = 64, kBoxBytes = 128;

// Positions of a block, as in the kernel. Next to wide sums, registers hold the scores of no more.
i64 keys_of(const Attention& a) {
  return a.head_dim() == 256 ? 32 : 64;
}

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

// A box of 64 columns of so many rows.
KernelMap map_of_rows(size_t address, const Tensor& rows, i64 high) {
  return {.address = u32(address + offsetof(Tensor, data)),
          .dtype = rows.dtype,
          .size = {rows.size[1], rows.size[0]},
          .stride = {0, rows.stride[0] * size_of(rows.dtype)},
          .box = {i32(kBoxColumns), i32(high)}};
}
// A box of 64 columns of some positions of a page.
KernelMap map_of_pages(size_t address, const Tensor& pages, i64 high) {
  const i64 size = size_of(pages.dtype);
  return {.address = u32(address + offsetof(Tensor, data)),
          .dtype = pages.dtype,
          .rank = 4,
          .size = {pages.size[3], pages.size[2], pages.size[1], pages.size[0]},
          .stride = {0, pages.stride[2] * size, pages.stride[1] * size, pages.stride[0] * size},
          .box = {i32(kBoxColumns), i32(std::min<i64>(high, pages.size[2])), 1, 1}};
}

}  // namespace

KernelPlan kernel(const std::byte* args, const KernelTarget& target, const OpConfig&) {
  const auto& a = as<Attention>(args);
  KernelPlan plan{.why_not = why_not(a, target), .file = "sm90"};
  if (!plan.why_not.empty()) return plan;
  constexpr i64 kBarriers = 32, kTiles = 16 + 2 * 32, kMostStages = 6;  // a stage has four barriers
  // Three groups hide more of the softmax than two, where there are tiles for all multiprocessors.
  const i64 slabs = a.head_dim() / kBoxColumns, keys = keys_of(a);
  const auto tiles = [&](i64 groups) { return ceil_div(a.q.size[0], 64 * groups) * a.heads; };
  const bool fits_three = a.head_dim() <= 128 && tiles(3) >= 2 * target.multiprocessors;
  const i64 groups = fits_three ? 3 : 2, rows = 64 * groups;
  const i64 queries = slabs * rows * kBoxBytes, stage = 2 * slabs * keys * kBoxBytes + kBarriers;
  const i64 stages = std::min(kMostStages, (target.shared_bytes - queries - kTiles) / stage);
  plan.constants = {{"dim", a.head_dim()},
                    {"groups", groups},
                    {"stages", stages},
                    {"modifies_scores", a.softcap > 0 || !(a.scale > 0)}};
  plan.launches.push_back({.name = "ChainKernel",
                           .grid = u32(std::min<i64>(tiles(groups), target.multiprocessors)),
                           .threads = u32(128 * (groups + 1)),
                           .shared_bytes = queries + stages * stage + kTiles,
                           .maps = {map_of_rows(offsetof(Attention, q), a.q, rows),
                                    map_of_rows(offsetof(Attention, k), a.k, keys),
                                    map_of_rows(offsetof(Attention, v), a.v, keys),
                                    map_of_pages(offsetof(Attention, keys), a.keys, keys),
                                    map_of_pages(offsetof(Attention, values), a.values, keys)}});
  return plan;
}

}  // namespace heddle::attention
