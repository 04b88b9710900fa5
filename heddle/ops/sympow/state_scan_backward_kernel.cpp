// Plans state_scan_backward as a whole kernel (state_scan_backward_kernel.sm80.cuh).
#include "heddle/ops/sympow/state_scan_backward.h"
#include "heddle/ops/sympow/sympow_kernels.h"

namespace heddle::state_scan_backward {

KernelPlan kernel(const std::byte* args, const KernelTarget&, const OpConfig&) {
  const auto& a = as<StateScanBackward>(args);
  KernelPlan plan{.file = "sm80"};
  plan.why_not = first_of({why_dtype("s", a.s.dtype), why_rows("s", a.s, a.s.dtype),
                           why_rows("ds", a.ds, a.s.dtype), why_rows("du", a.du, a.s.dtype)});
  if (!plan.why_not.empty()) return plan;
  constexpr i64 kThreads = 256, kWord = 8, kRows = 64;  // elements in 16 bytes; rows that a CTA has
  plan.constants = {{"words", ceil_div(kRows * a.s.size[3] / kWord, kThreads)}};
  plan.launches.push_back({.grid = u32(i64(a.s.size[0]) * a.s.size[1] * ceil_div(a.width(), kRows)),
                           .threads = u32(kThreads),
                           .shared_bytes = 2 * kThreads / 32 * 4});
  return plan;
}

}  // namespace heddle::state_scan_backward
