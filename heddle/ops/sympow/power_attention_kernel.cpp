// Plans power_attention as a whole kernel (power_attention_kernel.sm90.cuh).
#include "heddle/ops/sympow/power_attention.h"
#include "heddle/ops/sympow/sympow_kernels.h"

namespace heddle::power_attention {

KernelPlan kernel(const std::byte* args, const KernelTarget& target, const OpConfig&) {
  const auto& a = as<PowerAttention>(args);
  KernelPlan plan{.file = "sm90"};
  plan.why_not =
      first_of({why_not_sm90(target), why_dtype("q", a.q.dtype), why_rows("q", a.q, a.q.dtype),
                why_rows("k", a.k, a.q.dtype), why_rows("v", a.v, a.q.dtype), why_dtype("y", a.y.dtype),
                why_rows("y", a.y, a.y.dtype), why_past(a.past, a.q.dtype)});
  if (!plan.why_not.empty()) return plan;
  constexpr i32 kGroups = 2, kRows = 64 * kGroups, kGateBytes = kGroups * 2 * 64 * 4;
  const i32 wide = boxes_of(a.q.size[3]), columns = a.v.size[3];
  const SympowMemory memory{kGroups, 1, wide, wide + boxes_of(columns), kGateBytes};
  const i32 stages = stages_in(target.shared_bytes, memory);
  const tile::Budget budget = sympow_budget(memory, stages);
  plan.constants = {{"wide_rows", wide}, {"columns", columns}, {"power", a.power},
                    {"groups", kGroups}, {"overlap", 1},       {"stages", stages}};
  const i64 items = i64(a.q.size[0]) * a.q.size[2] * a.tiles().chunks() * ceil_div(a.tiles().chunk, kRows);
  plan.launches.push_back(
      {.grid = persistent_grid(items, 1, target),
       .threads = u32(budget.threads()),
       .shared_bytes = budget.shared_bytes(),
       .maps = {rows_map(offsetof(PowerAttention, q), a.q), rows_map(offsetof(PowerAttention, k), a.k),
                rows_map(offsetof(PowerAttention, v), a.v)}});
  return plan;
}

}  // namespace heddle::power_attention
