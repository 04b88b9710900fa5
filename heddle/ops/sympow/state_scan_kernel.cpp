// Plans state_scan as a whole kernel (state_scan_kernel.sm80.cuh).
#include "heddle/ops/sympow/state_scan.h"
#include "heddle/ops/sympow/sympow_kernels.h"

namespace heddle::state_scan {

KernelPlan kernel(const std::byte* args, const KernelTarget&, const OpConfig&) {
  const auto& a = as<StateScan>(args);
  KernelPlan plan{.file = "sm80"};
  const bool begins = a.s0.rank > 0;
  plan.why_not =
      first_of({why_dtype("u", a.u.dtype), why_rows("u", a.u, a.u.dtype), why_rows("s", a.s, a.u.dtype),
                why_rows("last", a.last, DType::kF32), begins ? why_rows("s0", a.s0, a.s0.dtype) : ""});
  if (!plan.why_not.empty()) return plan;
  constexpr i64 kThreads = 256, kWord = 8;  // elements of 16 bytes
  const i64 vectors = a.width() * i64(a.u.size[3]) / kWord;
  plan.launches.push_back(
      {.grid = u32(i64(a.u.size[0]) * a.u.size[1] * ceil_div(vectors, kThreads)), .threads = u32(kThreads)});
  return plan;
}

}  // namespace heddle::state_scan
