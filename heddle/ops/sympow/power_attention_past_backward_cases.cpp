#include "heddle/ops/sympow/power_attention_examples.h"
#include "heddle/ops/sympow/power_attention_past_backward.h"

namespace heddle::power_attention_past_backward {

std::vector<Case> cases() {
  std::vector<Case> cases = power_attention_cases_of<PowerAttentionPastBackward>(2);
  // Rows that begin at words of 16 bytes, as sympow_mma makes them.
  for (const PowerAttentionExample& e : {PowerAttentionExample{2, 37, 3, 16, 72, 0, 2, true, true, true},
                                         {1, 50, 2, 8, 8, 0, 4, false, true, false}})
    for (const DType type : {DType::kF32, DType::kBf16, DType::kF16}) {
      auto a = power_attention_inputs<PowerAttentionPastBackward>(e, type);
      a.past = input(type, {e.batch, e.rows, e.heads, e.columns + 8});
      cases.push_back(make_case(a, unit_bound(type, 16 + e.columns)));
    }
  return cases;
}

}  // namespace heddle::power_attention_past_backward
