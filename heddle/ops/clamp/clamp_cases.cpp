#include "heddle/ir/cases.h"
#include "heddle/ops/clamp/clamp.h"

namespace heddle::clamp {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [m, n] : {std::pair{1, 1}, {5, 37}, {33, 300}})
      for (auto [low, high] : {std::pair{-0.3f, 0.3f}, {0.1f, 0.1f}, {-4.0f, 0.5f}})
        cases.push_back(
            make_case(Clamp{.x = input(type, {m, n}), .low = low, .high = high}, rounding_bound(type, 1)));
  return cases;
}

}  // namespace heddle::clamp
