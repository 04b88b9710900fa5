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
  // The panels of a GPU's ring: 16-byte words of two rows in turn; one row, a few, and more than it takes.
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [m, n, k] : {std::array{1, 301, 64},
                           {1, 21, 2050},
                           {1, 9, 5000},
                           {3, 70, 130},
                           {4, 80, 24},
                           {8, 33, 2304},
                           {11, 18, 72}}) {
      Linear paired{.x = input(DType::kF32, {m, k}), .w = weight_input(type, n, k)};
      paired.w.panel_rows = 2;
      paired.w.interleave = 16 / size_of(type);
      const double bound = rounding_bound(type == DType::kF32 ? DType::kF32 : DType::kBf16, 8);
      cases.push_back(make_case(paired, bound * std::max(1, k / 8)));
    }
  return cases;
}

}  // namespace heddle
