// Plans mma_sympow as a whole kernel (mma_sympow_kernel.sm90.cuh).
#include "heddle/ops/sympow/mma_sympow.h"
#include "heddle/ops/sympow/sympow_kernels.h"

namespace heddle::mma_sympow {

KernelPlan kernel(const std::byte* args, const KernelTarget& target, const OpConfig&) {
  const auto& a = as<MmaSympow>(args);
  constexpr i32 kPositions = 64;  // a stage has so many
  KernelPlan plan{.file = "sm90"};
  plan.why_not =
      first_of({why_not_sm90(target), why_dtype("x", a.x.dtype), why_rows("x", a.x, a.x.dtype),
                why_rows("v", a.v, a.x.dtype), why_rows("s", a.s, a.s.dtype),
                a.chunk % kPositions == 0
                    ? ""
                    : fmt::format("chunk = {}; must be 0 or a multiple of {}", a.chunk, kPositions)});
  if (!plan.why_not.empty()) return plan;
  // A group's blocks have `columns` / 2 sums in a thread each.
  constexpr i32 kNarrow = 72, kWarpGroups = 2;
  const i32 tiles = a.x.size[3] / kSympowTile, columns = a.v.size[3];
  constexpr i64 kCluster = 1;  // measured on an H100: 17 % faster than 2
  const i64 fast = columns <= kNarrow ? 2 : 1;
  const auto below = [&](i64 count) {
    const i64 pairs = ceil_div(count, 2);
    return fast == 2 ? pairs * (pairs + 1) / 2 : pairs * (pairs + 1);
  };
  i64 units = a.power == 2 ? below(tiles) : 0;
  if (a.power == 4)
    for (i64 s = 0; s < tiles; ++s) units += (tiles - s) * kSympowGroup * below(s + 1);
  const SympowMemory memory{kWarpGroups, 0, 0, boxes_of(a.x.size[3]) + boxes_of(columns)};
  const i32 stages = stages_in(target.shared_bytes, memory);
  const tile::Budget budget = sympow_budget(memory, stages);
  plan.constants = {{"power", a.power}, {"tiles", tiles},      {"columns", columns},
                    {"fast", fast},     {"cluster", kCluster}, {"stages", stages}};
  const i64 items =
      i64(a.x.size[0]) * a.x.size[2] * a.tiles().chunks() * ceil_div(units, kWarpGroups * kCluster);
  plan.launches.push_back({.grid = persistent_grid(items, i32(kCluster), target),
                           .cluster = u32(kCluster),
                           .threads = u32(budget.threads()),
                           .shared_bytes = budget.shared_bytes(),
                           .maps = {rows_map(offsetof(MmaSympow, x), a.x, i32(kPositions / kCluster)),
                                    rows_map(offsetof(MmaSympow, v), a.v, i32(kPositions / kCluster))}});
  return plan;
}

}  // namespace heddle::mma_sympow
