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
  constexpr i64 kGroups = 2, kCluster = 2, kSlot = 128 * 16;  // bytes of a tile of dx of a group
  const i64 tiles = a.x.size[3] / kSympowTile, columns = a.dy.size[3];
  const i64 stage = (a.width() / kSympowGroup % 2 == 0 ? 2 : 1) * boxes_of(columns) * kKernelBox;
  const i64 rows =
      2 * (kGroups * (boxes_of(columns) + boxes_of(a.x.size[3])) * kKernelBox + kKernelBarriers) +
      kGroups * tiles * kSlot;
  const i64 stages = stages_in(target.shared_bytes - rows, stage);
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
                           .threads = u32(128 * (kGroups + 1)),
                           .shared_bytes = rows + stages * (stage + kKernelBarriers),
                           .maps = {rows_map(offsetof(SympowMmaBackward, x), a.x),
                                    rows_map(offsetof(SympowMmaBackward, dy), a.dy),
                                    states_map(offsetof(SympowMmaBackward, s), a.s, i32(64 / kCluster))}});
  return plan;
}

}  // namespace heddle::sympow_mma_backward
