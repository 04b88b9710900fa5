// Plans power_attention_backward as a whole kernel (power_attention_backward_kernel.sm90.cuh).
#include "heddle/ops/sympow/power_attention_backward.h"
#include "heddle/ops/sympow/power_attention_gradients.h"

namespace heddle::power_attention_backward {

KernelPlan kernel(const std::byte* args, const KernelTarget& target, const OpConfig&) {
  const auto& a = as<PowerAttentionBackward>(args);
  KernelPlan plan = plan_of_gradient(a, target, 128);
  if (plan.why_not.empty())
    plan.why_not = first_of(
        {why_dtype("dq", a.dq.dtype), why_rows("dq", a.dq, a.dq.dtype), why_past(a.past, a.q.dtype)});
  return plan;
}

}  // namespace heddle::power_attention_backward
