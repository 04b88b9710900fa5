#include "heddle/ir/cases.h"
#include "heddle/ops/flash_attention/flash_attention_sinks_backward.h"

namespace heddle::flash_attention_sinks_backward {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [batch, heads, rows] : {std::array{2, 3, 40}, {1, 1, 1}, {3, 2, 5}})
      cases.push_back(
          make_case(FlashAttentionSinksBackward{.sinks = input(type, {heads}),
                                                .lse = input(DType::kF32, {batch, heads, rows}),
                                                .delta = input(DType::kF32, {batch, heads, rows})},
                    unit_bound(type, 16 + batch * rows)));
  return cases;
}

}  // namespace heddle::flash_attention_sinks_backward
