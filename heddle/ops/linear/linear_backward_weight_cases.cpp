#include "heddle/ir/cases.h"
#include "heddle/ops/linear/linear_backward_weight.h"

namespace heddle {

std::vector<Case> linear_backward_weight_cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [m, n, k] :
         {std::array{1, 1, 1}, {1, 48, 64}, {3, 37, 65}, {70, 1, 9}, {9, 300, 1}, {130, 96, 130}})
      cases.push_back(make_case(LinearBackwardWeight{.x = input(type, {m, k}), .dy = input(type, {m, n})},
                                unit_bound(type, m)));
  return cases;
}

}  // namespace heddle
