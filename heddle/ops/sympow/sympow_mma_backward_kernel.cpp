// Plans sympow_mma_backward as a whole kernel (sympow_mma_backward_kernel.sm90.cuh).
#include "heddle/ops/sympow/sympow_kernels.h"
#include "heddle/ops/sympow/sympow_mma_backward.h"

namespace heddle::sympow_mma_backward {

KernelPlan kernel(const std::byte* args, const KernelTarget& target, const OpConfig&) {
  const auto& a = as<SympowMmaBackward>(args);
  KernelPlan plan{.file = "sm90"};
  plan.why_not = first_of({why_not_sm90(target), why_dtype("x", a.x.dtype), why_rows("x", a.x, a.x.dtype),
                           why_rows("s", a.s, a.x.dtype), why_rows("dy", a.dy, a.x.dtype),
                           why_rows("dx", a.dx, a.dx.dtype)});
  if (!plan.why_not.empty()) return plan;
  constexpr i32 kGroups = 2, kCluster = 2, kSlot = 128 * 16;  // bytes of a tile of dx of a group
  const i32 tiles = a.x.size[3] / kSympowTile, columns = a.dy.size[3];
  const i32 per = a.width() / kSympowGroup % 2 == 0 ? 2 : 1;
  const SympowMemory memory{kGroups, 2, boxes_of(columns) + boxes_of(a.x.size[3]), per * boxes_of(columns),
                            kGroups * tiles * kSlot};
  const i32 stages = stages_in(target.shared_bytes, memory);
  const tile::Budget budget = sympow_budget(memory, stages);
  plan.constants = {{"power", a.power},  {"tiles", tiles},      {"columns", columns},
                    {"groups", kGroups}, {"cluster", kCluster}, {"stages", stages}};
  if (stages < 2) {
    plan.why_not = "rows of x and dy leave no room for the state";
    return plan;
  }
  const i64 items = i64(a.x.size[0]) * a.x.size[2] * a.tiles().chunks() *
                    ceil_div(a.tiles().chunk, 64 * kGroups * kCluster);
  plan.launches.push_back({.grid = persistent_grid(items, i32(kCluster), target),
                           .cluster = u32(kCluster),
                           .threads = u32(budget.threads()),
                           .shared_bytes = budget.shared_bytes(),
                           .maps = {rows_map(offsetof(SympowMmaBackward, x), a.x),
                                    rows_map(offsetof(SympowMmaBackward, dy), a.dy),
                                    states_map(offsetof(SympowMmaBackward, s), a.s, i32(64 / kCluster))}});
  return plan;
}

}  // namespace heddle::sympow_mma_backward
