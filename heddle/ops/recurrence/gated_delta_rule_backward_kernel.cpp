// Plans gated_delta_rule_backward as whole kernels (gated_delta_rule_backward_kernel.sm80.cuh).
#include "heddle/ops/recurrence/delta_kernels.h"
#include "heddle/ops/recurrence/gated_delta_rule_backward.h"

namespace heddle::gated_delta_rule_backward {
namespace {

std::string why_not(const GatedDeltaRuleBackward& a) {
  constexpr i32 kMostColumns = 128;
  constexpr DType kType = DType::kBf16;
  if (a.derror.exists() || a.dstarts.exists()) return "error or starts has a gradient";
  for (const auto& [name, tensor] : {std::pair{"q", &a.q}, {"k", &a.k}, {"dq", &a.dq}, {"dk", &a.dk}})
    if (std::string why = why_rows(name, *tensor, kType, kMostDeltaDim); !why.empty()) return why;
  for (const auto& [name, tensor] : {std::pair{"v", &a.v}, {"dy", &a.dy}, {"dv", &a.dv}})
    if (std::string why = why_rows(name, *tensor, kType, kMostColumns); !why.empty()) return why;
  return first_of({why_rows("error", a.error, DType::kF32, kMostColumns), why_dense("starts", a.starts),
                   why_dense("ds0", a.ds0)});
}

}  // namespace

KernelPlan kernel(const std::byte* args, const KernelTarget& target, const OpConfig&) {
  const auto& a = as<GatedDeltaRuleBackward>(args);
  KernelPlan plan{.why_not = why_not(a), .file = "sm80"};
  if (!plan.why_not.empty()) return plan;
  const i32 dim = a.q.size[3], columns = a.v.size[3], warps = delta_warps(columns), part = 16 * warps;
  const auto scan_bytes = [&](i32 stages) {
    return i64(delta_backward_scan_budget(dim, part, stages).shared_bytes());
  };
  const i32 stages = scan_bytes(3) <= target.shared_bytes ? 3 : 2;
  const i64 heads = i64(a.q.size[0]) * a.q.size[2], chunks = heads * delta_chunks(a.q.size[1]);
  plan.constants = {{"kernel", 1}, {"dim", dim}, {"columns", columns}, {"warps", warps}, {"stages", stages}};
  plan.launches = {{.name = "Prepare",
                    .grid = u32(chunks),
                    .threads = u32(kDeltaThreads),
                    .shared_bytes = delta_backward_prepare_budget(dim, columns).shared_bytes()},
                   {.grid = u32(heads * ceil_div(columns, part)),
                    .threads = u32(32 * warps),
                    .shared_bytes = scan_bytes(stages)},
                   {.name = "Answer",
                    .grid = u32(chunks),
                    .threads = u32(kDeltaThreads),
                    .shared_bytes = delta_backward_answer_budget(dim, columns).shared_bytes()}};
  const i64 floats = i64(kDeltaChunk) * columns + i64(dim) * columns;  // x, and the gradient of a state
  plan.workspace_bytes = chunks * (DeltaBackwardRecord{dim}.bytes() + 4 * floats);
  return plan;
}

}  // namespace heddle::gated_delta_rule_backward
