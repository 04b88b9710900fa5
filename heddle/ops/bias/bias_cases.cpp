#include "heddle/ir/cases.h"
#include "heddle/ops/bias/bias.h"

namespace heddle::bias {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [m, n] : {std::pair{1, 1}, {1, 64}, {5, 37}, {33, 300}})
      cases.push_back(make_case(Bias{.x = input(type, {m, n}), .bias = input(DType::kF32, {n})},
                                rounding_bound(type, 1)));
  return cases;
}

}  // namespace heddle::bias
