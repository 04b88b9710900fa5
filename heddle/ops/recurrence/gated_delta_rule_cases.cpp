#include "heddle/ops/recurrence/delta_examples.h"
#include "heddle/ops/recurrence/gated_delta_rule.h"

namespace heddle::gated_delta_rule {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (const DeltaExample& e : kDeltaExamples)
    for (DType type : {DType::kF32, DType::kBf16, DType::kF16}) {
      Case one = make_case(delta_inputs<GatedDeltaRule>(e, type), rounding_bound(type, 64));
      one.prepare = tame_delta<GatedDeltaRule>;
      cases.push_back(one);
    }
  constexpr DeltaExample kSegments = {1, 1550, 1, 16, 32, true};
  Case many =
      make_case(delta_inputs<GatedDeltaRule>(kSegments, DType::kBf16), rounding_bound(DType::kBf16, 64));
  many.prepare = tame_delta<GatedDeltaRule>;
  cases.push_back(many);
  return cases;
}

}  // namespace heddle::gated_delta_rule
