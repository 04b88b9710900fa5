#include "heddle/ir/cases.h"
#include "heddle/ops/scale/scale.h"

namespace heddle::scale {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [m, n] : {std::pair{1, 1}, {5, 37}, {33, 300}})
      for (float factor : {0.22f, -12.0f})
        cases.push_back(
            make_case(Scale{.x = input(type, {m, n}), .factor = factor}, rounding_bound(type, 1)));
  return cases;
}

}  // namespace heddle::scale
