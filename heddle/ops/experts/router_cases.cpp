#include <algorithm>
#include <array>

#include "heddle/ir/cases.h"
#include "heddle/ops/experts/router.h"

namespace heddle::router {

// Inputs are f32, so that a body which rounds them to the weight's dtype is out of bounds.
std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [rows, experts, k] : {std::array{1, 1, 1}, {1, 60, 64}, {17, 37, 65}, {40, 128, 200}}) {
      Router args{.x = input(DType::kF32, {rows, k}), .w = weight_input(type, experts, k)};
      const double bound = rounding_bound(DType::kF32, 8) * std::max(1, k / 8);
      cases.push_back(make_case(args, bound));
      args.w.panel_rows = 2, args.w.interleave = 16 / size_of(type);  // a GPU's panels
      cases.push_back(make_case(args, bound));
    }
  cases.push_back(
      make_case(Router{.x = input(DType::kBf16, {9, 40}), .w = weight_input(DType::kBf16, 33, 40)}, 0x1p-18));
  return cases;
}

}  // namespace heddle::router
