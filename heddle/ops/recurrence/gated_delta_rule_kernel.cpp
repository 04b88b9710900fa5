// Plans gated_delta_rule as whole kernels (gated_delta_rule_kernel.sm80.cuh).
#include <algorithm>
#include <span>

#include "heddle/base/integer.h"
#include "heddle/ir/kernel.h"
#include "heddle/ir/rules.h"
#include "heddle/ops/recurrence/delta_memory.h"
#include "heddle/ops/recurrence/gated_delta_rule.h"

namespace heddle::gated_delta_rule {
namespace {

constexpr i32 kMostDim = 128, kMostColumns = 256;

std::string why_rows(const char* name, const Tensor& tensor, DType dtype, i32 most) {
  const i32 word = 16 / size_of(dtype);
  if (tensor.dtype != dtype)
    return fmt::format("{} is {}; must be {}", name, heddle::name(tensor.dtype), heddle::name(dtype));
  if (tensor.size[3] % 16 != 0 || tensor.size[3] > most)
    return fmt::format("{} has rows of {}; must be a multiple of 16, at most {}", name, tensor.size[3], most);
  for (int d = 0; d < 3; ++d)
    if (tensor.stride[d] % word != 0)
      return fmt::format("{} has strides of {} elements; rows must begin at multiples of 16 bytes", name,
                         tensor.stride[d]);
  return {};
}

std::string why_dense(const char* name, const Tensor& tensor) {
  const Tensor like = dense(tensor.dtype, {tensor.size[0], tensor.size[1], tensor.size[2], tensor.size[3]});
  return std::ranges::equal(std::span(tensor.stride, 3), std::span(like.stride, 3))
             ? ""
             : fmt::format("{} is not dense", name);
}

std::string why_not(const GatedDeltaRule& a) {
  for (const auto& reason :
       {why_rows("q", a.q, DType::kBf16, kMostDim), why_rows("k", a.k, DType::kBf16, kMostDim),
        why_rows("v", a.v, DType::kBf16, kMostColumns), why_rows("y", a.y, DType::kBf16, kMostColumns),
        why_rows("error", a.error, DType::kF32, kMostColumns), why_dense("starts", a.starts),
        why_dense("last", a.last)})
    if (!reason.empty()) return reason;
  return {};
}

}  // namespace

KernelPlan kernel(const std::byte* args, const KernelTarget&, const OpConfig&) {
  const auto& a = as<GatedDeltaRule>(args);
  KernelPlan plan{.why_not = why_not(a), .file = "sm80"};
  if (!plan.why_not.empty()) return plan;
  const i32 dim = a.q.size[3], columns = a.v.size[3], warps = std::min(4, columns / 16);
  const i64 heads = i64(a.q.size[0]) * a.q.size[2], chunks = heads * delta_chunks(a.q.size[1]);
  plan.constants = {{"kernel", 1}, {"dim", dim}, {"columns", columns}, {"warps", warps}};
  plan.launches = {{.name = "Prepare",
                    .grid = u32(chunks),
                    .threads = u32(kDeltaThreads),
                    .shared_bytes = delta_prepare_budget(dim, columns).shared_bytes()},
                   {.grid = u32(heads * ceil_div(columns, 16 * warps)),
                    .threads = u32(32 * warps),
                    .shared_bytes = delta_scan_budget(dim).shared_bytes()},
                   {.name = "Answer",
                    .grid = u32(chunks),
                    .threads = u32(kDeltaThreads),
                    .shared_bytes = delta_answer_budget(dim).shared_bytes()}};
  plan.workspace_bytes = chunks * DeltaRecord{dim}.bytes();
  return plan;
}

}  // namespace heddle::gated_delta_rule
