#include "heddle/ops/flash_attention/attention_examples.h"
#include "heddle/ops/flash_attention/flash_attention_bias_backward.h"

namespace heddle::flash_attention_bias_backward {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (const AttentionExample& e : attention_examples()) {
      if (e.bias.empty()) continue;
      FlashAttentionBiasBackward args;
      fill_attention(e, type, args);
      fill_given(e, type, args);
      cases.push_back(make_case(args, unit_bound(type, 64 + e.dim)));
      cases.back().prepare = prepare_attention<FlashAttentionBiasBackward>(e);
    }
  return cases;
}

}  // namespace heddle::flash_attention_bias_backward
