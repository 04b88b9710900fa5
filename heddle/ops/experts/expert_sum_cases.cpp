#include <array>

#include "heddle/ir/cases.h"
#include "heddle/ops/experts/expert_sum.h"

namespace heddle::expert_sum {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [rows, taken, columns] : {std::array{1, 1, 1}, {1, 8, 64}, {5, 3, 37}, {33, 2, 600}})
      cases.push_back(make_case(
          ExpertSum{.x = input(type, {rows * taken, columns}), .share = input(DType::kF32, {rows, taken})},
          rounding_bound(type, 2 * taken)));
  return cases;
}

}  // namespace heddle::expert_sum
