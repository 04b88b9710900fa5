// Plans sympow_mma as a whole kernel (sympow_mma_kernel.sm90.cuh).
#include "heddle/ops/sympow/sympow_kernels.h"
#include "heddle/ops/sympow/sympow_mma.h"

namespace heddle::sympow_mma {

KernelPlan kernel(const std::byte* args, const KernelTarget& target, const OpConfig&) {
  const auto& a = as<SympowMma>(args);
  KernelPlan plan{.file = "sm90"};
  plan.why_not = first_of({why_not_sm90(target), why_dtype("x", a.x.dtype), why_rows("x", a.x, a.x.dtype),
                           why_rows("s", a.s, a.x.dtype), why_rows("y", a.y, a.y.dtype)});
  if (!plan.why_not.empty()) return plan;
  // Measured on an H100: four groups for narrow states, two for wide ones, whose sums take more registers. Power 4 keeps more of x in
  // them, and would spill with four.
  constexpr i64 kNarrow = 72, kMiddle = 96;
  const i32 tiles = a.x.size[3] / kSympowTile, columns = a.s.size[3];
  const i32 groups = columns <= kNarrow && a.power == 2 ? 4 : columns <= kMiddle ? 3 : 2, cluster = 2;
  const i32 per = a.width() / kSympowGroup % 2 == 0 ? 2 : 1;
  const SympowMemory memory{groups, 2, boxes_of(a.x.size[3]), per * boxes_of(columns)};
  const i32 stages = stages_in(target.shared_bytes, memory);
  const tile::Budget budget = sympow_budget(memory, stages);
  plan.constants = {{"power", a.power},   {"tiles", tiles},   {"columns", columns}, {"groups", groups},
                    {"cluster", cluster}, {"stages", stages}, {"per", per},         {"turns", 0}};
  const ChunkTiles chunks = a.tiles();
  const i64 items =
      i64(a.x.size[0]) * a.x.size[2] * chunks.chunks() * ceil_div(chunks.chunk, 64 * groups * cluster);
  plan.launches.push_back({.grid = persistent_grid(items, i32(cluster), target),
                           .cluster = u32(cluster),
                           .threads = u32(budget.threads()),
                           .shared_bytes = budget.shared_bytes(),
                           .maps = {rows_map(offsetof(SympowMma, x), a.x),
                                    states_map(offsetof(SympowMma, s), a.s, i32(64 / cluster))}});
  return plan;
}

}  // namespace heddle::sympow_mma
