// Plans gated_delta_rule as whole kernels (gated_delta_rule_kernel.sm80.cuh).
#include "heddle/ops/recurrence/delta_kernels.h"
#include "heddle/ops/recurrence/gated_delta_rule.h"

namespace heddle::gated_delta_rule {

KernelPlan kernel(const std::byte* args, const KernelTarget&, const OpConfig&) {
  const auto& a = as<GatedDeltaRule>(args);
  constexpr i32 kMostColumns = 256;
  constexpr DType kType = DType::kBf16;
  KernelPlan plan{.file = "sm80"};
  plan.why_not = first_of({why_rows("q", a.q, kType, kMostDeltaDim), why_rows("k", a.k, kType, kMostDeltaDim),
                           why_rows("v", a.v, kType, kMostColumns), why_rows("y", a.y, kType, kMostColumns),
                           why_rows("error", a.error, DType::kF32, kMostColumns),
                           why_dense("starts", a.starts), why_dense("last", a.last)});
  if (!plan.why_not.empty()) return plan;
  const i32 dim = a.q.size[3], columns = a.v.size[3], warps = delta_warps(columns);
  const i64 heads = i64(a.q.size[0]) * a.q.size[2], chunks = heads * delta_chunks(a.q.size[1]);
  plan.constants = {{"kernel", 1}, {"dim", dim}, {"columns", columns}, {"warps", warps}};
  const i32 parts = ceil_div(columns, 16 * warps), parts_of_matrix = ceil_div(dim, 16 * warps);
  const DeltaSegments cut = DeltaSegments::of(heads * parts, delta_chunks(a.q.size[1]));
  const auto launch = [&](const char* name, i64 grid, i32 threads, const tile::Budget& budget) {
    plan.launches.push_back(
        {.name = name, .grid = u32(grid), .threads = u32(threads), .shared_bytes = budget.shared_bytes()});
  };
  launch("Prepare", chunks, kDeltaThreads, delta_prepare_budget(dim, columns));
  if (cut.count > 1) {
    launch("Segments", heads * (cut.count - 1) * (parts + parts_of_matrix), 32 * warps,
           delta_scan_budget(dim));
    launch("Join", heads * columns / 4, kDeltaThreads, delta_join_budget(dim));
    plan.workspace_bytes = heads * cut.count * delta_segment_floats(dim, columns) * 4;
  }
  launch("Kernel", heads * cut.count * parts, 32 * warps, delta_scan_budget(dim));
  launch("Answer", chunks, kDeltaThreads, delta_answer_budget(dim));
  plan.workspace_bytes += chunks * DeltaRecord{dim}.bytes();
  return plan;
}

}  // namespace heddle::gated_delta_rule
