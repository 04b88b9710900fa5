#include "heddle/ir/cases.h"
#include "heddle/ops/linear/linear.h"

namespace heddle {

std::vector<Case> linear_cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [m, n, k] : {std::array{1, 1, 1}, {1, 48, 64}, {3, 37, 65}, {9, 300, 31}, {40, 96, 130}}) {
      // Products of values in [-1, 1] summed over k; a narrow weight may make the inputs narrow too.
      double bound = rounding_bound(type == DType::kF32 ? DType::kF32 : DType::kBf16, 8) * std::max(1, k / 8);
      cases.push_back(
          make_case(Linear{.x = input(DType::kF32, {m, k}), .w = weight_input(type, n, k)}, bound));
    }
  // Panels of 2 rows by 24 columns, as a GPU's stream may have them.
  Linear sliced{.x = input(DType::kF32, {2, 70}), .w = weight_input(DType::kBf16, 10, 70)};
  sliced.w.panel_rows = 2;
  sliced.w.panel_cols = 24;
  cases.push_back(make_case(sliced, rounding_bound(DType::kBf16, 8) * 9));
  return cases;
}

}  // namespace heddle
