#include "heddle/ir/cases.h"
#include "heddle/ops/activation/gated_activation.h"

namespace heddle::gated_activation {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (i32 kind = 0; kind < kNumActivations; ++kind)
    for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
      for (auto [m, n] : {std::pair{1, 1}, {5, 37}, {33, 150}})
        cases.push_back(
            make_case(GatedActivation{.x = input(type, {m, 2 * n}), .kind = kind}, rounding_bound(type, 8)));
  return cases;
}

}  // namespace heddle::gated_activation
