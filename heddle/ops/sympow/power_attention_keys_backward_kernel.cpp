// Plans power_attention_keys_backward as a whole kernel (power_attention_keys_backward_kernel.sm90.cuh).
#include "heddle/ops/sympow/power_attention_gradients.h"
#include "heddle/ops/sympow/power_attention_keys_backward.h"

namespace heddle::power_attention_keys_backward {

KernelPlan kernel(const std::byte* args, const KernelTarget& target, const OpConfig&) {
  const auto& a = as<PowerAttentionKeysBackward>(args);
  KernelPlan plan = plan_of_gradient(a, target, 64);
  if (plan.why_not.empty())
    plan.why_not = first_of({why_dtype("dk", a.dk.dtype), why_rows("dk", a.dk, a.dk.dtype),
                             why_dtype("dv", a.dv.dtype), why_rows("dv", a.dv, a.dv.dtype)});
  return plan;
}

}  // namespace heddle::power_attention_keys_backward
