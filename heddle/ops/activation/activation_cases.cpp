#include "heddle/ir/cases.h"
#include "heddle/ops/activation/activation.h"

namespace heddle::activation {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (i32 kind = 0; kind < kNumActivations; ++kind)
    for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
      for (auto [m, n] : {std::pair{1, 1}, {5, 37}, {33, 300}})
        cases.push_back(
            make_case(Activation{.x = input(type, {m, n}), .kind = kind}, rounding_bound(type, 8)));
  return cases;
}

}  // namespace heddle::activation
